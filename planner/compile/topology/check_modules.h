// Which modules a recipe may have together, and on which ranks (docs/layouts/grids.md#placement,
// docs/layouts/bridges.md#colocated).
#pragma once

#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// False, and located problems, unless there is exactly one language model: several or no module (PW0201), encoders
// alone (PW0214).
bool CheckOneLanguage(const Recipe& recipe, Diagnostics& diagnostics);

// False, and a located problem (PW0215), for ep or expert_tp above 1 on a module without experts.
bool CheckExpertAxes(const ModuleRecipe& module, Diagnostics& diagnostics);

// False, and located problems: modules that share some of their ranks, or some modules colocated and others disjoint
// (PW0206); colocated modules with pp or cp above 1 (PW0216). Placements must be in range.
bool CheckSharedRanks(const Recipe& recipe, Diagnostics& diagnostics);

// One past the last rank of a module, whose ranks are known.
int64_t EndOf(const ModuleRecipe& module);

// "rank 3", "ranks 0 to 7" of [first, end).
std::string RanksText(int64_t first, int64_t end);
// Where the recipe places a module.
Location PlacementOf(const ModuleRecipe& module);

}  // namespace planwright
