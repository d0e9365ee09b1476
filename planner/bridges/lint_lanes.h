// A word about encoder lanes that never have work.
#pragma once

#include "planner/diagnostics/diagnostic.h"
#include "planner/plan/axis.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// PW0309: `encoder` on `source` has more lanes than a microbatch, micro_samples for each of `language_lanes`, has
// samples. The reference asks for a microbatch that its lanes divide; dealing samples needs no such rule, and leaves
// the last lanes idle.
void LintLanes(const Recipe& recipe, const ModuleRecipe& encoder, const Grid& source, int language_lanes,
               Diagnostics& diagnostics);

}  // namespace planwright
