// Budgets and schedules that work and are seldom meant.
#pragma once

#include "planner/diagnostics/diagnostic.h"
#include "planner/plan/plan.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// Warnings PW0407, PW0409, PW0410, PW0413 and PW0414. Step t (from 1) trains at the rate of sample (t - 1) *
// global_samples.
void LintBudget(const Recipe& recipe, const Budget& budget, Diagnostics& diagnostics);

}  // namespace planwright
