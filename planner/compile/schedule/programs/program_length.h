// Whether programs stay within limits.h. They are proved, estimated and run with every call opened, so that is the
// length that counts.
#pragma once

#include <vector>

#include "planner/plan/plan.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// How long the programs of a plan are, as a part of the longest ones: of instructions and of calls, or of the passages
// of microbatches through stages and bridges, whichever is most. Above 0, up to 1.
double PartOfLongest(const Plan& plan);

// False, and a located problem (PW0105), when they are too long.
bool CheckLength(const Recipe& recipe, const Budget& budget, const std::vector<Block>& blocks,
                 const std::vector<Role>& roles, Diagnostics& diagnostics);

}  // namespace planwright
