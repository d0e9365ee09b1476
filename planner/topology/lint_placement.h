// Placements that work and cost more than they need to: groups that talk across nodes, GPUs without work.
#pragma once

#include <vector>

#include "planner/diagnostics/diagnostic.h"
#include "planner/plan/axis.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// Warnings PW0210 to PW0213. `grids` are in recipe order. CPU ranks have no nodes that matter.
void LintPlacement(const Recipe& recipe, const std::vector<Grid>& grids, Diagnostics& diagnostics);

}  // namespace planwright
