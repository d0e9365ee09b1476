// Pipeline stages of one module whose work differs.
#pragma once

#include "planner/diagnostics/diagnostic.h"
#include "planner/plan/plan.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// Warning PW0506: a stage whose forward (flops.h; output head and projector count to the last stage) takes half as much
// again as the mean of the others. `module` is expanded from `recipe`.
void LintStages(const ModuleRecipe& recipe, const Module& module, Diagnostics& diagnostics);

}  // namespace planwright
