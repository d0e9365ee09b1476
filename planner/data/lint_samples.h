// Words about samples that train something else than they seem to.
#pragma once

#include "planner/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// PW0605: a sample's auxiliary loss weighs sequence_length / N, and each of its loss tokens 1 / N (N: loss tokens of
// the step): where few tokens carry loss, balancing the experts outweighs the text (facts 3.6). PW0606: an encoder, and
// made-up samples without images.
void LintSamples(const Recipe& recipe, Diagnostics& diagnostics);

}  // namespace planwright
