// Whether the plan of a recipe is small enough to be made, proved and read in seconds (docs/limits.md). Checked from
// sizes alone, before anything of that size is made.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// Layers, stages and buckets of all modules, and passages of microbatches through stages and over bridges. `grids`: in
// recipe order. `lanes`: of the language model. False, and located problems (PW0105), when there are too many.
bool CheckPlanSize(const Recipe& recipe, const std::vector<Grid>& grids, int64_t lanes, Diagnostics& diagnostics);

}  // namespace planwright
