// The content of a checkpoint, as rules over axes: which ranks write which part of which tensor. Rule V9 of `verify`
// proves that each element is written exactly once (planner/verify).
#pragma once

#include "planner/plan/plan.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// `modules`: with their buckets. `dtype`: of parameters, as forward and backward read them. The rules are made also for
// a recipe without checkpoints: a later run may load them.
CheckpointPlan CheckpointOf(const std::vector<Module>& modules, const OptimizerPlan& optimizer, DType dtype,
                            const CheckpointRecipe& recipe);

}  // namespace planwright
