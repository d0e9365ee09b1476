// Kernels of a bias that is added to each of the bf16 rows of a residual sum, and of its gradient.
#pragma once

#include "executor/kernels/rms_norm.h"

namespace planwright::executor::ops {

// sum = x + y + bias in fp32, rounded once. The bias [width] is contiguous, at any address. Rows are as those of RMS
// norm.
void LaunchAddRowBias(const __nv_bfloat16* x, const __nv_bfloat16* y, const __nv_bfloat16* bias, __nv_bfloat16* sum,
                      const RowShape& shape, cudaStream_t stream);

// The number of rows of partial sums that LaunchRowBiasGradient writes.
int64_t RowBiasPartials(const RowShape& shape);

// `partials` [RowBiasPartials, width] fp32 gets sums of rows of dy: their sum over rows is the gradient of the bias.
void LaunchRowBiasGradient(const __nv_bfloat16* dy, float* partials, const RowShape& shape, cudaStream_t stream);

}  // namespace planwright::executor::ops
