// How a choice depends on speeds that nobody measured.
#pragma once

#include <functional>
#include <vector>

#include "planner/search/tune.h"
#include "planner/search/whole_step.h"

namespace planwright {

// For the links of a node and for the network, as far as the profile has no time of them: how much slower each must be
// for another of `others` to be faster than `fastest`. `stopped`: asked before each simulation; then it says of the
// links that are done.
std::vector<TuneSensitivity> SensitivityOf(const TunedRecipe& tuned, const Candidate& fastest,
                                           const std::vector<Candidate>& others, const std::function<bool()>& stopped);

}  // namespace planwright
