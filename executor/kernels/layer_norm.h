// Kernels of LayerNorm (docs/model/vision_encoder.md#layers) over the last dim of bf16 rows, and of its backward.
#pragma once

#include "executor/kernels/rms_norm.h"

namespace planwright::executor::ops {

// What both directions read: weight and bias [width], contiguous, at any address. Rows are as those of RMS norm.
struct LayerNormWeights {
  const __nv_bfloat16 *weight = nullptr, *bias = nullptr;
};

// Also writes mean and scale [rows] fp32: the mean and 1 / deviation of each row. Statistics are fp32.
void LaunchLayerNorm(const __nv_bfloat16* x, const LayerNormWeights& weights, float eps, __nv_bfloat16* y, float* mean,
                     float* scale, const RowShape& shape, cudaStream_t stream);

// The number of rows of partial sums that LaunchLayerNormGradient writes.
int64_t LayerNormPartials(const RowShape& shape);

// dx from the gradient of y. `beside`, rows as those of x, is added to dx before it is rounded; null: nothing is.
// With it the width is at most kWidestSum. `partials` [LayerNormPartials, 2 width] fp32 gets terms of the gradients of
// weight and bias, side by side: their sums over rows are these gradients. Null: they are not wanted.
void LaunchLayerNormGradient(const __nv_bfloat16* dy, const __nv_bfloat16* x, const float* mean, const float* scale,
                             const __nv_bfloat16* weight, const __nv_bfloat16* beside, __nv_bfloat16* dx,
                             float* partials, const RowShape& shape, cudaStream_t stream);

}  // namespace planwright::executor::ops
