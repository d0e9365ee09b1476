// What a checkpoint of a plan's modules holds, as rules over axes: which ranks write which part of which tensor
// (design, V9).
#pragma once

#include "planner/plan/plan.h"

namespace planwright {

// `modules`: with their buckets. `dtype`: of parameters, as forward and backward read them. `every_steps` 0: no
// checkpoint is asked for; the rules are made all the same, for the one that is written at the end.
CheckpointPlan CheckpointOf(const std::vector<Module>& modules, const OptimizerPlan& optimizer, DType dtype,
                            int64_t every_steps);

}  // namespace planwright
