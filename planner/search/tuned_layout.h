// The figures of a candidate that was chosen: its recipe is read again with the changes, compiled and proved.
#pragma once

#include <optional>

#include "planner/search/tune.h"
#include "planner/search/whole_step.h"

namespace planwright {

// `given`: the plan of the recipe as it was given, with which the curve is compared; null: there is none. Nothing if
// the recipe with the changes does not compile: some lint of it is an error.
std::optional<TunedLayout> ProveLayout(const TuneRequest& request, const TunedRecipe& tuned, const Candidate& candidate,
                                       const Plan* given);

// The figures of a plan that was compiled.
TunedLayout FiguresOf(const Plan& plan);

}  // namespace planwright
