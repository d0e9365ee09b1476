// The bridges of a recipe: which encoder feeds the language module, and who sends which samples to whom.
#pragma once

#include <optional>
#include <vector>

#include "planner/diagnostics/diagnostic.h"
#include "planner/plan/plan.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// In recipe order. A microbatch is a block of (language dp) * micro_samples samples, dealt to each module's lanes by
// SamplesOfLane. Nothing, and located problems (PW03xx), for a bridge between modules that cannot be joined, an encoder
// without one, or tokens that do not tell bridges apart (check_tokens.h). A warning for encoder lanes that never have a
// sample (lint_lanes.h).
std::optional<std::vector<Bridge>> RouteBridges(const Recipe& recipe, const std::vector<Grid>& grids,
                                                Diagnostics& diagnostics);

// The part of it that needs no grids: false, and located problems, when the bridges do not join what they should.
bool CheckBridges(const Recipe& recipe, Diagnostics& diagnostics);

}  // namespace planwright
