// What a checkpoint of a plan's modules holds, as rules over axes: which ranks write which part of which tensor
// (design, V9).
#pragma once

#include "planner/plan/plan.h"

namespace planwright {

// Precision, optimizer and modules with their buckets are there. `every_steps` 0: no checkpoint is asked for; the rules
// stand all the same, for what is written at the end.
CheckpointPlan CheckpointOf(const Plan& plan, int64_t every_steps);

}  // namespace planwright
