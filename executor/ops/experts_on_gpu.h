// The routed experts on a GPU in bf16: grouped products, and one kernel between them. executor/ops/experts.cc describes
// operands and results.
#pragma once

#include "executor/ops/handler.h"

namespace planwright::executor::ops {

// Whether the kernels take the operands: bf16 rows on a GPU, at least one of them, fp32 row weights, and a width of the
// experts that is a multiple of 8.
bool ExpertsTakeKernels(const ComputeContext& context);
bool ExpertsGradTakesKernels(const ComputeContext& context);

Tensors ExpertsOnGpu(const ComputeContext& context);
Tensors ExpertsGradOnGpu(const ComputeContext& context);

}  // namespace planwright::executor::ops
