// Lints about samples that train something else than their author probably expects.
#pragma once

#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// For recipes with an encoder, adds
// PW0605 if the auxiliary loss weighs much more than its coefficient. Each loss token weighs 1 / N and the auxiliary
// loss
//        of each sample sequence_length / N, where N counts the loss tokens of the step
//        (docs/model/mixture_of_experts.md#auxiliary-loss). If few tokens have a loss, the auxiliary loss dominates.
// PW0606 if samples never have an image.
// For all recipes, adds
// PW0614 if samples are to be balanced by images that they do not have.
void LintSamples(const Recipe& recipe, Diagnostics& diagnostics);

}  // namespace planwright
