// Whether a recipe asks for a plan of a size that can be made, proved and read in a moment (limits.h).
#pragma once

#include <cstdint>
#include <vector>

#include "planner/diagnostics/diagnostic.h"
#include "planner/plan/plan.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// Layers, stages and buckets of all modules, and how often a step runs them. `grids` are in recipe order, `lanes` those
// of the language model. False, and located problems (PW0105), when there are too many.
bool CheckSize(const Recipe& recipe, const std::vector<Grid>& grids, int64_t lanes, Diagnostics& diagnostics);

}  // namespace planwright
