// Samples into steps, microbatches and a learning-rate schedule. Formulas: facts 6.
#pragma once

#include <optional>
#include <vector>

#include "planner/diagnostics/diagnostic.h"
#include "planner/plan/plan.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// steps = ceil(train_samples / global_samples); microbatches = global_samples / (micro_samples * language dp), exactly.
// `grids` are in recipe order. Nothing, and located problems (PW04xx), when the numbers do not fit together.
std::optional<Budget> BudgetSamples(const Recipe& recipe, const std::vector<Grid>& grids, Diagnostics& diagnostics);

// The part of it that needs no grids: false, and located problems, when rates or decays are out of order.
bool CheckRates(const Recipe& recipe, Diagnostics& diagnostics);

}  // namespace planwright
