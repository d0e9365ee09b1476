// Recipe to plan: the passes in order.
#pragma once

#include <optional>

#include "planner/diagnostics/diagnostic.h"
#include "planner/plan/plan.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// Compiles and proves. Nothing, with every problem found, when the recipe is not valid; warnings may come with a plan.
std::optional<Plan> CompileRecipe(const Recipe& recipe, Diagnostics& diagnostics);

}  // namespace planwright
