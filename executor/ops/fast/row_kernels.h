// What the fast forms of the norms, the convolution and elementwise operations share. Only files of the CUDA build
// include this.
#pragma once

#include "executor/ops/fast/cuda_operands.h"
#include "executor/ops/fast/gpu_rows.h"
#include "executor/ops/handler.h"
#include "executor/ops/parameter_part.h"

namespace planwright::executor::ops {

// Whether kernels may read the first `count` inputs in vectors of 16 bytes.
inline bool LieInVectors(const ComputeContext& context, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (!LiesInVectors(context.inputs[i])) return false;
  }
  return true;
}

// Whether kernels may read a parameter: it is a view of a larger buffer and may lie at any address.
inline bool InBf16Elements(const at::Tensor& parameter) {
  return parameter.scalar_type() == at::kBFloat16 && parameter.is_contiguous();
}

// New partial sums, fp32 [rows, columns]; undefined in a frozen part.
at::Tensor PartialSums(const ComputeContext& context, int64_t rows, int64_t columns);
inline float* ElementsOrNull(const at::Tensor& partials) {
  return partials.defined() ? Elements<float>(partials) : nullptr;
}

// Adds the sums of the columns of `partials` to the gradients of the instruction, of which there are one or two: the
// first columns belong to the first one. Nothing in a frozen part.
void AddColumnSums(const ComputeContext& context, const at::Tensor& partials);
// The same for the part `own` of each gradient.
void AddColumnSums(const ComputeContext& context, const at::Tensor& partials, const ParameterPart& own);

}  // namespace planwright::executor::ops
