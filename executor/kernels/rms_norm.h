// Kernels of RMS norm (docs/model/language_model.md#rmsnorm) over the last dim of bf16 rows, and of its backward.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace planwright::executor::ops {

// x, y and their gradients are [rows, width], contiguous and aligned to 16 bytes. The weight [width] is contiguous, at
// any address.
struct RowShape {
  int64_t rows = 0;
  int64_t width = 0;  // a multiple of 8, at most kWidestRow
};

constexpr int64_t kWidestRow = 6144;
// Of backwards that add: their rows fit the shared memory that a block has on every GPU since Ampere, 99 KB.
constexpr int64_t kWidestSum = 4096;

// Also writes scale [rows] fp32: 1/rms of each row. Statistics are fp32.
void LaunchRmsNorm(const __nv_bfloat16* x, const __nv_bfloat16* weight, float eps, __nv_bfloat16* y, float* scale,
                   const RowShape& shape, cudaStream_t stream);

// The number of rows of partial sums that LaunchRmsNormGradient writes.
int64_t RmsNormPartials(const RowShape& shape);

// dx from the gradient of y. `beside`, rows as those of x, is added to dx before it is rounded; null: nothing is.
// With it the width is at most kWidestSum. `partials` [RmsNormPartials, width] fp32 gets terms of the gradient of the
// weight: their sum over rows is that gradient. Null: it is not wanted.
void LaunchRmsNormGradient(const __nv_bfloat16* dy, const __nv_bfloat16* x, const float* scale,
                           const __nv_bfloat16* weight, const __nv_bfloat16* beside, __nv_bfloat16* dx, float* partials,
                           const RowShape& shape, cudaStream_t stream);

}  // namespace planwright::executor::ops
