// Placements that work but waste time or GPUs: groups across nodes, modules that split nodes, idle GPUs.
#pragma once

#include <vector>

#include "planner/plan/axis.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// Warnings PW0210 to PW0213. `grids`: in recipe order. None for CPU ranks (gpu: none), whose nodes do not matter.
void LintPlacement(const Recipe& recipe, const std::vector<Grid>& grids, Diagnostics& diagnostics);

}  // namespace planwright
