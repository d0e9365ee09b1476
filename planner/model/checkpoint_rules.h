// What a checkpoint of these modules holds, as rules over axes: which ranks write which part of which tensor (design, V9).
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

// `modules` have their buckets. `every_steps` 0: no checkpoint is asked for; the rules stand all the same, for what is written at the end.
CheckpointPlan CheckpointOf(const std::vector<Module>& modules, const std::string& precision, int64_t every_steps);

}  // namespace planwright
