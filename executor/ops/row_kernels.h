// What the fast forms of the norms, the convolution and elementwise operations share. Only files of the CUDA build
// include this.
#pragma once

#include "executor/ops/cuda_operands.h"
#include "executor/ops/handler.h"
#include "executor/ops/parameter_part.h"

namespace planwright::executor::ops {

// Whether kernels may read a tensor in vectors of 16 bytes: bf16 on a GPU, contiguous and aligned.
inline bool InVectors(const at::Tensor& x) {
  return OnGpuInBf16(x) && x.is_contiguous() && reinterpret_cast<uintptr_t>(x.const_data_ptr()) % 16 == 0;
}

// Whether kernels may read a parameter, which is a view of a larger buffer and may lie at any address.
inline bool InElements(const at::Tensor& parameter) { return OnGpuInBf16(parameter) && parameter.is_contiguous(); }

// Whether statistics have the dtype that the kernels write: fp32.
inline bool InFp32(const at::Tensor& statistics) {
  return statistics.is_cuda() && statistics.is_contiguous() && statistics.scalar_type() == at::kFloat;
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
