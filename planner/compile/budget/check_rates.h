// Learning rate and weight decay: the formulas that a budget resolves them by, and the rules that they keep
// (docs/training/budget.md#rules).
#pragma once

#include "planner/plan/plan.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// Learning rate of a recipe, with fractions turned into samples and defaults filled in: decay_samples is train_samples
// if it is not given.
LearningRate LearningRateOf(const BudgetRecipe& budget);

// False, and located problems (PW04xx), unless
//   0 <= min <= peak, init <= peak, 0 < decay_samples, 0 <= warmup < decay_samples, and wsd settings are complete;
//   0 <= start <= end of the weight decay, and start == end for the constant style.
// Warning PW0408: wsd settings with another style.
bool CheckRates(const BudgetRecipe& budget, Diagnostics& diagnostics);

}  // namespace planwright
