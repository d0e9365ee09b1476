// What tokens without loss do to the auxiliary loss.
#pragma once

#include "planner/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// Warning PW0605. A sample's auxiliary loss weighs sequence_length / N, and each of its loss tokens 1 / N (N: loss tokens of the step): where few
// tokens carry loss, balancing the experts outweighs the text (facts 3.6).
void LintMasking(const Recipe& recipe, Diagnostics& diagnostics);

}  // namespace planwright
