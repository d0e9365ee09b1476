// The recipe of a plan from which the costs of one module's parts are read (piece_costs.h).
#pragma once

#include <cstdint>
#include <string_view>

#include "planner/search/candidate.h"
#include "planner/search/whole_step.h"

namespace planwright {

// One stage of `module` with one layer of each kind, on as few ranks as its axes need, from rank 0 on. Every other
// module has one layer, behind it, on as many ranks of dp as make one microbatch with `samples` on each lane of
// `module`. `recompute`: the word for all its layers, none, full or elementwise.
Recipe MiniRecipe(const TunedRecipe& tuned, size_t module, const ModuleChoice& choice, std::string_view recompute,
                  int64_t samples);

// The cluster for it: with room for every rank, and without figures that refuse a plan.
Cluster MiniCluster(const TunedRecipe& tuned);

}  // namespace planwright
