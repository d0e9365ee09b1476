// Budgets, learning rates and warmups that work but are seldom meant.
#pragma once

#include "planner/plan/plan.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// Warnings PW0407 and PW0409 (decay and samples past the end), PW0410 (warmup that never ends), PW0413 (wsd decay that
// is too long), PW0414 (rates without effect). Step t, from 1, trains at the rate of sample (t - 1) * global_samples.
void LintBudget(const Recipe& recipe, const Budget& budget, Diagnostics& diagnostics);

}  // namespace planwright
