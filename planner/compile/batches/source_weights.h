// The weights of a mixture as whole numbers, exactly those that the author wrote.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// A weight for each source, without a common divisor, in the same proportions as the decimal texts of the recipe.
// Empty, with a problem (PW0609) at each weight that has more than 6 digits after the point, or at the sources if the
// sum is above kLongestPeriod. Its help gives the nearest weights that fit.
std::vector<int64_t> ScaledWeights(const std::vector<SourceRecipe>& sources, Diagnostics& diagnostics);

}  // namespace planwright
