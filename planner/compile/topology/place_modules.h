// Which module is on which ranks: one grid for each, checked to cover the world without gaps
// (docs/layouts/grids.md#placement).
#pragma once

#include <optional>
#include <vector>

#include "planner/plan/axis.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// Modules in recipe order.
struct Placement {
  bool complete = false;  // there was no problem: every module has its grid and its stages
  std::vector<std::optional<Grid>> grids;
  std::vector<std::vector<int>> stages;  // the pipeline stage of each layer
};

// Every problem that can be found is reported: PW02xx, and PW05xx for the shapes of models. Warnings (PW0210 to PW0213)
// of placements that work but waste time or GPUs.
Placement PlaceModules(const Recipe& recipe, Diagnostics& diagnostics);

// Nothing if it is not complete.
std::optional<std::vector<Grid>> GridsOf(const Placement& placement);

}  // namespace planwright
