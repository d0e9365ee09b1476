// The content of a checkpoint, as rules over axes: which ranks write which part of which tensor. Rule V9 of `verify`
// proves that each element is written exactly once (planner/verify).
#pragma once

#include "planner/plan/plan.h"

namespace planwright {

// `modules`: with their buckets. `dtype`: of parameters, as forward and backward read them. `every_steps` 0: the recipe
// asks for no checkpoints during the training. The rules are made anyway, for the checkpoint at the end.
CheckpointPlan CheckpointOf(const std::vector<Module>& modules, const OptimizerPlan& optimizer, DType dtype,
                            int64_t every_steps);

}  // namespace planwright
