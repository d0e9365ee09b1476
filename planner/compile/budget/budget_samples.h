// From samples to steps, microbatches, and learning rate and weight decay at each sample
// (docs/training/budget.md#steps, #learning-rate, #weight-decay).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// steps = ceil(train_samples / global_samples); microbatches = global_samples / (micro_samples * language dp), exactly.
// `grids`: in recipe order. Nothing, and located problems (PW04xx), when the numbers do not fit together, or (PW0105)
// when the plan would be too large. Warnings for settings that work but are seldom meant.
std::optional<Budget> BudgetSamples(const Recipe& recipe, const std::vector<Grid>& grids, Diagnostics& diagnostics);

// EvaluationSet::rounds: each reads a block, as a microbatch does (docs/training/evaluation.md#rounds).
void CountRounds(const Budget& budget, EvaluationPlan& evaluation);
// The checks of BudgetSamples that need no grids but the number of language lanes, if that is known.
void CheckBudget(const Recipe& recipe, std::optional<int64_t> lanes, Diagnostics& diagnostics);

}  // namespace planwright
