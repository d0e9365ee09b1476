// RMS norm by kernels (executor/kernels/rms_norm.h). norm.cc has the plain form, which defines it. Only files of the
// CUDA build include this.
#pragma once

#include "executor/ops/handler.h"

namespace planwright::executor::ops {

// Whether the kernels can run rms_norm or rms_norm_grad: bf16, statistics in fp32, and a width of whole vectors that is
// not too large. x is input `index`; dy before it has its dtype, and the tensor behind it is scale.
bool TakesRmsNorm(const ComputeContext& context, size_t index);

Tensors RmsNormOnGpu(const ComputeContext& context);
Tensors RmsNormGradOnGpu(const ComputeContext& context);

}  // namespace planwright::executor::ops
