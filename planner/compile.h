// From recipe to plan. compile.cc lists the passes in order: each takes finished inputs and makes one part of the plan.
#pragma once

#include <optional>

#include "planner/diagnostics/diagnostic.h"
#include "planner/plan/plan.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// Compiles a recipe and proves the plan. Nothing, and every problem that was found, when the recipe is not valid.
// Warnings may come with a plan.
std::optional<Plan> CompileRecipe(const Recipe& recipe, Diagnostics& diagnostics);

// The plan alone: not proved, without digest and lints of its figures. For those that look at many recipes, and prove
// the one that they choose. `recipe`: undamaged, with the ids of prepared data (WithPreparedIds). `cluster`: ClusterOf.
std::optional<Plan> MakePlan(const Recipe& recipe, Cluster cluster, Diagnostics& diagnostics);

}  // namespace planwright
