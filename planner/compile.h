// From recipe to plan. compile.cc lists the passes in order: each takes finished inputs and makes one part of the plan.
#pragma once

#include <optional>

#include "planner/diagnostics/diagnostic.h"
#include "planner/plan/plan.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// The checks that come before a plan is made: a part of what CompileRecipe finds, in a fraction of its time.
void CheckRecipe(const Recipe& recipe, Diagnostics& diagnostics);

// Compiles a recipe and proves the plan. Nothing, and every problem that was found, when the recipe is not valid.
// Warnings may come with a plan.
std::optional<Plan> CompileRecipe(const Recipe& recipe, Diagnostics& diagnostics);

}  // namespace planwright
