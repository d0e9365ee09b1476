// Cross entropy by the kernels of executor/kernels/cross_entropy.h.
#pragma once

#include "executor/ops/handler.h"

namespace planwright::executor::ops {

// Whether the kernels take the inputs of an instruction that reads logits: bf16 on a GPU, contiguous, with a multiple
// of 8 columns; and `statistics` inputs behind them (of the gradient: m and sums) in fp32.
bool TakesCrossEntropyKernels(const ComputeContext& context, size_t statistics);

// Whether the kernel takes the inputs of cross_entropy_sums: fp32 on a GPU.
bool TakesSumsKernel(const ComputeContext& context);

Tensors CrossEntropyPartsOnGpu(const ComputeContext& context);
Tensors CrossEntropySumsOnGpu(const ComputeContext& context);
Tensors CrossEntropyGradOnGpu(const ComputeContext& context);

}  // namespace planwright::executor::ops
