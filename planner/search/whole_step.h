// A candidate as its whole plan has it: memory of every role, and the step with all its instructions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"
#include "planner/search/candidate.h"

namespace planwright {

// A recipe that candidates are made of, and what all of them have in common.
struct TunedRecipe {
  Recipe recipe;                     // undamaged, with the ids of prepared data
  Cluster cluster;                   // with the whole profile
  std::vector<std::string> changes;  // of the cluster, by which it differs from the recipe of the request
  Diagnostics levels;                // with the levels of lints that the recipe sets
  int64_t margin = 0;                // TuneRequest::margin
};

struct WholeStep {
  bool valid = false;  // the rules allow it
  bool fits = false;   // in memory, with the margin
  double seconds = 0;  // of one that fits: StepTime::length
  int64_t memory = 0;  // of the fullest rank, as planned
};

// Its plan, which is not proved; nothing if the rules refuse it.
std::optional<Plan> PlanOf(const TunedRecipe& tuned, const Candidate& candidate);

WholeStep SimulateWhole(const TunedRecipe& tuned, const Candidate& candidate);

}  // namespace planwright
