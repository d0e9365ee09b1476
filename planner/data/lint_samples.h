// Lints about samples that train something else than their author probably expects.
#pragma once

#include "planner/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// Only for recipes with an encoder. Adds
// PW0605 if the auxiliary loss weighs much more than its coefficient. Each loss token weighs 1 / N and the auxiliary
// loss
//        of each sample sequence_length / N, where N counts the loss tokens of the step
//        (docs/model/mixture_of_experts.md#auxiliary-loss). If few tokens have a loss, the auxiliary loss dominates.
// PW0606 if mock samples never have an image.
void LintSamples(const Recipe& recipe, Diagnostics& diagnostics);

}  // namespace planwright
