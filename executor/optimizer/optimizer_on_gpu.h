// The end of a step by the kernels of executor/kernels/adamw.h, for fp32 and fp64 shards on a GPU. optimizer.h says
// what the functions do.
#pragma once

#include "executor/optimizer/module_state.h"
#include "executor/optimizer/step_state.h"

namespace planwright::executor {

void ScaleGradientsOnGpu(const StepState& step, BucketState& bucket);
void AddSquaresOnGpu(const at::Tensor& gradient, const at::Tensor& sum);
// Gradients are clipped on the way and stay as they are.
void StepAdamWOnGpu(const OptimizerPlan& optimizer, const StepState& step, BucketState& bucket);

}  // namespace planwright::executor
