// Who is where: one grid per module, proven to tile the world. Rules: facts 1.3, 1.5.
#pragma once

#include <optional>
#include <vector>

#include "planner/diagnostics/diagnostic.h"
#include "planner/plan/axis.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// Grids in recipe order. Every problem that can be found is reported (PW02xx, model shapes PW05xx); nothing when there
// was one.
std::optional<std::vector<Grid>> PlaceModules(const Recipe& recipe, Diagnostics& diagnostics);

// The rules on their own, for a `recipe` whose modules' own numbers are in range.
bool CheckModuleNames(const Recipe& recipe, Diagnostics& diagnostics);
bool CheckPlacements(const Recipe& recipe, Diagnostics& diagnostics);

}  // namespace planwright
