// Whether a module's model can be cut the way its grid says, and whether the model's own sizes fit together.
#pragma once

#include "planner/diagnostics/diagnostic.h"
#include "planner/plan/axis.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// False, and located problems: PW05xx for sizes that do not fit together on any layout.
bool CheckModelShape(const ModuleRecipe& module, Diagnostics& diagnostics);

// False, and located problems (PW0209) for sizes that the module's tp, cp, ep or expert_tp does not divide.
bool CheckLayout(const Recipe& recipe, const ModuleRecipe& module, Diagnostics& diagnostics);

}  // namespace planwright
