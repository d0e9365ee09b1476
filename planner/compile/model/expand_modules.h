// All modules of a recipe as a plan has them.
#pragma once

#include <vector>

#include "planner/plan/plan.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// Expands each module (expand_model.h), without buckets. `grids` and `stages` (of each layer): in recipe order, from
// PlaceModules. `data`: for the images that an encoder's FLOPs are counted for. A warning (PW0506) for pipeline stages
// whose work differs (lint_stages.h).
std::vector<Module> ExpandModules(const Recipe& recipe, const std::vector<Grid>& grids,
                                  const std::vector<std::vector<int>>& stages, const DataPlan& data,
                                  Diagnostics& diagnostics);

}  // namespace planwright
