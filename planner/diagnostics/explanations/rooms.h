// The explanations of each room, in the table's order. Whoever adds a kind to diagnostic_kind.def adds its explanation
// here, a recipe that gives it under tests/golden/broken or tests/golden/lints, and writes docs/diagnostics.md again
// (UPDATE_GOLDENS=1 diagnostics_test); tests ask for all three.
#pragma once

#include <span>

#include "planner/diagnostics/explanation.h"

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
