// A module's model, layer by layer: its published parameters, how they are cut, the tensors a rank holds, and its
// layers. Shapes, names and initial values: facts section 3 and design ("The recipe"). Buckets come later
// (assign_buckets.h).
#pragma once

#include "planner/plan/plan.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// The language model that an encoder's projector feeds.
struct ProjectorTarget {
  int64_t hidden = 0;
  double init_std = 0;
  int64_t layers = 0;             // residual outputs start with init_std / sqrt(layers)
  bool several_encoders = false;  // file names then carry the module's name in front
};

// `grid` must have passed PlaceModules' checks (every cut divides). `target` is read for encoders only, `sequence`
// (tokens of a sample) for language models only, `data` for the images that an encoder's FLOPs are counted for.
Module ExpandModule(const ModuleRecipe& recipe, const Grid& grid, const ProjectorTarget& target, int64_t sequence,
                    const DataPlan& data);

// The layer kinds of the module whose forward is run again in the backward pass, in a fixed order; "full" is all that
// the model can have.
std::vector<std::string> RecomputedKinds(const ModuleRecipe& recipe);

ProjectorTarget TargetOf(const HybridLmModel& model);

// The pattern's layers as characters, without segment breaks.
std::string LayersOf(const HybridLmModel& model);

}  // namespace planwright
