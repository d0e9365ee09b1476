// Whether the model of a config.json is one that a recipe may have: the checks of `plan validate`, in terms of the
// config's keys (docs/hugging_face.md#what-goes-in).
#pragma once

#include "planner/exchange/findings.h"
#include "planner/exchange/model_sizes.h"

namespace planwright {

// Reads the text that import writes as a recipe on one rank. A problem for each that its reader finds in the ranges of
// keys, its statements in how sizes fit together, and its bridge in the image token.
void CheckAsRecipe(const ModelSizes& sizes, Findings& findings);

}  // namespace planwright
