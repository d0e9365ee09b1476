// From recipe to plan. compile.cc lists the passes in order: each takes finished inputs and makes one part of the plan.
#pragma once

#include <optional>

#include "planner/compile/batches/source_files.h"
#include "planner/compile/cluster_of.h"
#include "planner/plan/plan.h"
#include "planner/predict/estimate/step_time.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// What is known of the files that a recipe names, for those that check it with several values.
struct KnownFiles {
  explicit KnownFiles(const Recipe& recipe) : sources(CountPatterns(recipe)) {}

  LookedFor sources;
  ProfileFiles profiles;
};

// The checks that come before a plan is made: a part of what CompileRecipe finds, in a fraction of its time.
void CheckRecipe(const Recipe& recipe, KnownFiles& files, Diagnostics& diagnostics);

// Compiles a recipe and proves the plan. Nothing, and every problem that was found, when the recipe is not valid.
// Warnings may come with a plan. `time`: where to put the predicted step, whose roles are those of the plan: it stays
// good while the plan is moved, and not if it is copied. Null: a step is predicted only where the device is known.
// `part`: where to put its PartOfLongest (program_length.h), also of a plan that is refused after it was made. Null:
// nowhere.
std::optional<Plan> CompileRecipe(const Recipe& recipe, KnownFiles& files, Diagnostics& diagnostics,
                                  StepTime* time = nullptr, double* part = nullptr);
// The same, of a recipe that is compiled once.
std::optional<Plan> CompileRecipe(const Recipe& recipe, Diagnostics& diagnostics, StepTime* time = nullptr);

// The plan alone: not proved, without digest and lints of its figures. For those that look at many recipes, and prove
// the one that they choose. `recipe`: undamaged, with the ids of prepared data (WithPreparedIds). `cluster`: ClusterOf.
std::optional<Plan> MakePlan(const Recipe& recipe, Cluster cluster, Diagnostics& diagnostics);

}  // namespace planwright
