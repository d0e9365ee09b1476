// The data of the evaluation sets: each is the recipe's section `data` with other samples.
#pragma once

#include "planner/plan/plan.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// Without sets if the recipe evaluates nothing. `rounds` are left at 0: they follow from the batch. Problems are those
// of PlanData, of what a set has instead; those that `data` itself has are not told again.
EvaluationPlan PlanEvaluation(const Recipe& recipe, Diagnostics& diagnostics);

}  // namespace planwright
