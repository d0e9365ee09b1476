// The gated norm by kernels (executor/kernels/gated_norm.h). gated_norm.cc has the plain form, which defines it. Only
// files of the CUDA build include this.
#pragma once

#include "executor/ops/handler.h"
#include "executor/ops/parameter_part.h"

namespace planwright::executor::ops {

// Whether the kernels can run gated_norm or gated_norm_grad: bf16, statistics in fp32, and widths of whole vectors.
// zxbcdt is input `index`; the tensors before it have its dtype, and the one behind it is scale.
bool TakesGatedNorm(const ComputeContext& context, size_t index);

// `own`: this rank's part of the weight.
Tensors GatedNormOnGpu(const ComputeContext& context, const ParameterPart& own);
Tensors GatedNormGradOnGpu(const ComputeContext& context, const ParameterPart& own);

}  // namespace planwright::executor::ops
