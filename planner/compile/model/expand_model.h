// A module of the recipe as a module of the plan: the constants and layers that the recipe gives, and what the
// statement of its model makes of them (expand_statement.h). Shapes, names and initial values:
// docs/model/language_model.md and docs/model/vision_encoder.md. Buckets are assigned later (assign_buckets.h).
#pragma once

#include "planner/plan/plan.h"
#include "planner/plan/statement/model_statement.h"
#include "planner/recipe/model_facts.h"
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
// `stages`: the pipeline stage of each layer, from there.
// `target` is used for encoders only, `sequence` (tokens of a sample) and `data` (the images of an encoder) for FLOPs.
Module ExpandModule(const ModuleRecipe& recipe, const Grid& grid, const std::vector<int>& stages,
                    const ProjectorTarget& target, int64_t sequence, const DataPlan& data);

// The parameters of a module as one rank would hold them, with the module's kind and trained parts, and nothing else of
// it: for checks of names, which are the same on all layouts. The model must have passed its own checks; of `target`
// several_encoders alone counts.
Module ParametersOf(const ModuleRecipe& recipe, const ProjectorTarget& target);

// The constants that the statement of the model asks for, of modules with these layers. `numbers`: those of the recipe
// (NumbersOf). An encoder also has those of the language model that it feeds: the projector's shape and initial values
// depend on them.
Attributes ConstantsOf(const ModelRecipe& recipe, LocatedNumbers numbers, const ProjectorTarget& target);

// The words of the layer kinds that are recomputed, in the order of the statement, and then "elementwise" if the
// recipe has it. "full" means all kinds that the
// model has layers of.
std::vector<std::string> RecomputedKinds(const ModuleRecipe& recipe);

// What an encoder must know of the language model that its bridge leads to.
ProjectorTarget TargetOf(const ModelRecipe& language);

// The letter of each layer of a model.
std::string LayersOf(const ModelRecipe& recipe);

}  // namespace planwright
