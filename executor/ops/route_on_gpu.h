// The router on a GPU in bf16: one kernel behind the product with the gate, one before the products of the backward.
// executor/ops/route.cc describes operands and results.
#pragma once

#include "executor/ops/handler.h"

namespace planwright::executor::ops {

// Whether the kernels take the operands: bf16 rows and gate on a GPU, the other floats fp32, at least one token, at
// most kMostExperts experts and kMostChoices of them for each token.
bool RouteTakesKernels(const ComputeContext& context);
bool RouteGradTakesKernels(const ComputeContext& context);

Tensors RouteOnGpu(const ComputeContext& context);
Tensors RouteGradOnGpu(const ComputeContext& context);

}  // namespace planwright::executor::ops
