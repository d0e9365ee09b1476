// Which modules a recipe may have together, whatever their sizes. Facts 1.5, 2.6.
#pragma once

#include "planner/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// False, and located problems, unless there is exactly one language module (PW0201), also where encoders stand alone
// (PW0214).
bool CheckOneLanguage(const Recipe& recipe, Diagnostics& diagnostics);

// False, and a located problem (PW0215), for ep or expert_tp above 1 on a module without experts.
bool CheckExpertAxes(const ModuleRecipe& module, Diagnostics& diagnostics);

// False, and located problems: modules whose ranks overlap in part, or some of which are colocated and others apart
// (PW0206); colocated modules with pp or cp above 1 (PW0216). Placements must be in range.
bool CheckSharedRanks(const Recipe& recipe, Diagnostics& diagnostics);

// "rank 3", "ranks 0 to 7"; where a module is placed.
std::string RanksText(int64_t first, int64_t end);
Location PlacementOf(const ModuleRecipe& module);

}  // namespace planwright
