// Kernels of the gated norm of a Mamba layer (docs/model/mamba.md#gated-norm): an RMS norm of y silu(z) over groups of
// channels, and its backward.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace planwright::executor::ops {

// y, yn and their gradients, and the gradient of z, are [rows, inner]. z is the first `inner` columns of rows
// [rows, features]. All of them are contiguous and aligned to 16 bytes. The weight [inner] is contiguous, at any
// address.
struct GatedNormShape {
  int64_t rows = 0, inner = 0;
  int64_t group = 0;     // channels of a group: a multiple of 8, at most kWidestGroup; it divides `inner`
  int64_t features = 0;  // a multiple of 8
};

constexpr int64_t kWidestGroup = 512;

// Also writes scale [rows, inner / group] fp32: 1/rms of each group. Statistics are fp32.
void LaunchGatedNorm(const __nv_bfloat16* y, const __nv_bfloat16* z, const __nv_bfloat16* weight, float eps,
                     __nv_bfloat16* yn, float* scale, const GatedNormShape& shape, cudaStream_t stream);

// The number of rows of partial sums that LaunchGatedNormGradient writes.
int64_t GatedNormPartials(const GatedNormShape& shape);

// dy and dz from the gradient of yn. `partials` [GatedNormPartials, inner] fp32 gets terms of the gradient of the
// weight: their sum over rows is that gradient. Null: it is not wanted.
void LaunchGatedNormGradient(const __nv_bfloat16* dyn, const __nv_bfloat16* y, const __nv_bfloat16* z,
                             const float* scale, const __nv_bfloat16* weight, __nv_bfloat16* dy, __nv_bfloat16* dz,
                             float* partials, const GatedNormShape& shape, cudaStream_t stream);

}  // namespace planwright::executor::ops
