// Expands the model of a module layer by layer: its published parameters, how they are cut, the storages that a rank
// holds, and its layers. Shapes, names and initial values: docs/model/language_model.md and
// docs/model/vision_encoder.md. Buckets are assigned later (assign_buckets.h).
#pragma once

#include "planner/plan/plan.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// The language model to which an encoder's projector leads.
struct ProjectorTarget {
  int64_t hidden = 0;  // width of the projector's output
  double init_std = 0;
  int64_t layers = 0;             // the projector's last matrix starts with init_std / sqrt(layers)
  bool several_encoders = false;  // published names then start with the module's name
};

// `grid` must have passed the checks of PlaceModules, so that every cut size is a multiple of its parallel size.
// `target` is used for encoders only, `sequence` (tokens of a sample) for language models only, and `data` for the
// images whose FLOPs an encoder counts.
Module ExpandModule(const ModuleRecipe& recipe, const Grid& grid, const ProjectorTarget& target, int64_t sequence,
                    const DataPlan& data);

// The words of the layer kinds that are recomputed, in the order of layer_kinds.def. "full" means all kinds that such a
// model can have.
std::vector<std::string> RecomputedKinds(const ModuleRecipe& recipe);

// What an encoder must know of the language model that its bridge leads to.
ProjectorTarget TargetOf(const HybridLmModel& model);

// The letters of the pattern's layers, without `|`.
std::string LayersOf(const HybridLmModel& model);

}  // namespace planwright
