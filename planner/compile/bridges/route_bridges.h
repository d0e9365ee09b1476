// The bridges of a recipe: which encoder feeds the language model, and which rank sends which samples to which.
#pragma once

#include <optional>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// In recipe order. A microbatch is a block of (language dp) * micro_samples samples, which SamplesOfLane deals to the
// lanes of each module. Nothing, and located problems (PW03xx), for a bridge between modules that cannot be joined, an
// encoder without a bridge, tokens that do not tell bridges apart (check_tokens.h), or more transfers than a plan can
// have. Warning PW0309: encoder lanes that never have a sample.
std::optional<std::vector<Bridge>> RouteBridges(const Recipe& recipe, const std::vector<Grid>& grids,
                                                Diagnostics& diagnostics);

// The checks of RouteBridges that need no grids. False, and located problems, when one fails.
bool CheckBridges(const Recipe& recipe, Diagnostics& diagnostics);

}  // namespace planwright
