// The parts of the plan's data that only data of kind `sources` has, with their checks.
#pragma once

#include "planner/plan/plan.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// Fills the fields of `sources` in `data`, whose token ids, vocabulary and encoders are known, and checks them: names
// (PW0107, PW0109), weights (PW0609), keys that contradict each other or have no effect (PW0109), token ids that are
// missing (PW0102), outside the vocabulary (PW0601) or the same (PW0610).
void PlanSources(const Recipe& recipe, DataPlan& data, Diagnostics& diagnostics);

}  // namespace planwright
