// The explanations of each part of the planner, in the order of diagnostic_kind.def.
// To add a kind to diagnostic_kind.def, also add: its explanation in this folder; a recipe that causes it under
// tests/golden/broken or tests/golden/lints; and docs/diagnostics.md again (UPDATE_GOLDENS=1 diagnostics_test).
// Tests check all three.
#pragma once

#include <span>

#include "planner/recipe/diagnostics/explanation.h"

namespace planwright {

std::span<const Explanation> FileExplanations();
std::span<const Explanation> RecipeExplanations();
std::span<const Explanation> TopologyExplanations();
std::span<const Explanation> BridgeExplanations();
std::span<const Explanation> BudgetExplanations();
std::span<const Explanation> ModelExplanations();
std::span<const Explanation> DataExplanations();
std::span<const Explanation> PlanExplanations();

}  // namespace planwright
