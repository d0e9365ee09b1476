// The hybrid Mamba-2 / attention / MoE language model, layer by layer (facts 3.1 to 3.8).
#pragma once

#include "planner/plan/plan.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// Fills parameters, storages, layers and counts of `module`, whose name, grid and frozen parts are set. `stages`: of
// each layer.
void ExpandLanguage(const HybridLmModel& model, int64_t sequence, const std::vector<int>& stages, Module& module);

}  // namespace planwright
