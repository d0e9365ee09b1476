// A lint about pipeline stages of a module that have very different amounts of work.
#pragma once

#include "planner/plan/plan.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// PW0506 if the forward of a stage has at least 1.5 times the FLOPs of the mean of the other stages. The embedding
// belongs to the first stage, the output head or projector to the last. `module` is expanded from `recipe`.
void LintStages(const ModuleRecipe& recipe, const Module& module, Diagnostics& diagnostics);

}  // namespace planwright
