// Tokens of all ep ranks to expert rows and back on a GPU in bf16, with an order by counting and rows moved 16 bytes at
// a time. The host never waits. executor/ops/select_rows.cc describes operands and results.
#pragma once

#include "executor/ops/handler.h"

namespace planwright::executor::ops {

// Whether the kernels take the operands: bf16 rows on a GPU of whole 16 bytes, and fp32 weights. There is at least one
// row here, and the ep ranks have fewer than kMostOrderedExperts experts together.
bool SelectRowsTakesKernels(const ComputeContext& context, int64_t rows);
bool SelectRowsGradTakesKernels(const ComputeContext& context);
bool CombineRowsTakesKernels(const ComputeContext& context);
bool CombineRowsGradTakesKernels(const ComputeContext& context);

Tensors SelectRowsOnGpu(const ComputeContext& context, int64_t rows);
Tensors SelectRowsGradOnGpu(const ComputeContext& context);
Tensors CombineRowsOnGpu(const ComputeContext& context);
Tensors CombineRowsGradOnGpu(const ComputeContext& context);

}  // namespace planwright::executor::ops
