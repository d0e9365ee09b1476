// Tokens to expert rows and back on a GPU in bf16, with an order by counting and rows moved 16 bytes at a time.
// executor/ops/permute_rows.cc describes operands and results.
#pragma once

#include "executor/ops/handler.h"

namespace planwright::executor::ops {

// Whether the kernels take the operands: bf16 rows on a GPU of whole 16 bytes, and fp32 weights. There is at least one
// row, and the module has at most kMostOrderedExperts experts. (Operations called without a module, as tests do, are
// taken: a larger expert stops the device.)
bool PermuteRowsTakesKernels(const ComputeContext& context);
bool PermuteRowsGradTakesKernels(const ComputeContext& context);
bool UnpermuteRowsTakesKernels(const ComputeContext& context);  // and its gradient

Tensors PermuteRowsOnGpu(const ComputeContext& context);
Tensors PermuteRowsGradOnGpu(const ComputeContext& context);
Tensors UnpermuteRowsOnGpu(const ComputeContext& context);
Tensors UnpermuteRowsGradOnGpu(const ComputeContext& context);

}  // namespace planwright::executor::ops
