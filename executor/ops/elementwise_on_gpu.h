// Elementwise operations in one pass each (executor/kernels/elementwise.h). elementwise.cc has the plain forms, which
// define them. Only files of the CUDA build include this.
#pragma once

#include "executor/ops/handler.h"

namespace planwright::executor::ops {

// Whether the kernels take the inputs: bf16, in whole vectors, all of one shape.
bool TakesElementwise(const Tensors& inputs);

Tensors SquaredReluOnGpu(const ComputeContext& context);
Tensors SquaredReluGradOnGpu(const ComputeContext& context);
// The sum of three inputs, rounded once.
Tensors AddThreeOnGpu(const ComputeContext& context);

}  // namespace planwright::executor::ops
