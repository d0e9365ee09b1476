// Which module is on which ranks: one grid for each, checked to cover the world without gaps
// (docs/layouts/grids.md#placement).
#pragma once

#include <optional>
#include <vector>

#include "planner/plan/axis.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// Grids in recipe order. Every problem that can be found is reported: PW02xx, and PW05xx for the shapes of models.
// Nothing when there is one. Warnings (PW0210 to PW0213) of placements that work but waste time or
// GPUs.
std::optional<std::vector<Grid>> PlaceModules(const Recipe& recipe, Diagnostics& diagnostics);

}  // namespace planwright
