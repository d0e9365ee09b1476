// The constraints on learning rates and weight decays. Rules: facts 6.2, 6.3.
#pragma once

#include "planner/diagnostics/diagnostic.h"
#include "planner/plan/plan.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// False, and located problems, unless 0 <= min <= peak, init <= peak, 0 < decay_samples, warmup < decay_samples, and
// wsd is complete.
bool CheckLearningRate(const LearningRateRecipe& recipe, const LearningRate& rate, const Location& budget,
                       Diagnostics& diagnostics);

// False, and located problems, unless 0 <= start <= end, and start == end for the constant style.
bool CheckWeightDecay(const WeightDecayRecipe& recipe, const Location& budget, Diagnostics& diagnostics);

}  // namespace planwright
