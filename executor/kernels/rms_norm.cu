// RMS norm and its backward (rms_norm.h).
#include "executor/kernels/rms_norm.h"
#include "executor/kernels/wide_rows.cuh"

namespace planwright::executor::ops {
namespace {

__global__ void __launch_bounds__(kMostThreads)
    RmsNormKernel(const __nv_bfloat16* x, const __nv_bfloat16* weight, float eps, __nv_bfloat16* y, float* scale,
                  RowShape shape) {
  __shared__ Slots<kRows> slots;
  BlockSums<kRows> sum(slots);
  const ThreadWork work(shape);
  uint4 next[kRows];
  work.Load(x, work.first, shape.rows, next);
  float weights[kVector];
  work.LoadWeights(weight, weights);
  for (int64_t row = work.first; row < shape.rows; row += work.step) {
    float values[kRows][kVector], squares[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      Widen(next[r], values[r]);
      squares[r] = 0;
#pragma unroll
      for (int i = 0; i < kVector; ++i) squares[r] += values[r][i] * values[r][i];
    }
    work.Load(x, row + work.step, shape.rows, next);
    sum(squares);
    uint4* out = reinterpret_cast<uint4*>(y) + work.Vector(row);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (row + r >= shape.rows) break;
      const float factor = rsqrtf(squares[r] / static_cast<float>(shape.width) + eps);
#pragma unroll
      for (int i = 0; i < kVector; ++i) values[r][i] *= factor * weights[i];
      if (work.exists) out[r * work.row_vectors] = Narrow(values[r]);
      if (threadIdx.x == 0) scale[row + r] = factor;
    }
  }
}

// With u = x scale and du = dy weight: dx = (du - u mean(du u)) scale.
__global__ void __launch_bounds__(kMostThreads)
    RmsNormGradientKernel(const __nv_bfloat16* dy, const __nv_bfloat16* x, const float* scale,
                          const __nv_bfloat16* weight, __nv_bfloat16* dx, float* partials, RowShape shape) {
  __shared__ Slots<kRows> slots;
  BlockSums<kRows> sum(slots);
  const ThreadWork work(shape);
  uint4 next_dy[kRows], next_x[kRows];
  float next_scale[kRows];
  const auto load = [&](int64_t row) {
    work.Load(dy, row, shape.rows, next_dy);
    work.Load(x, row, shape.rows, next_x);
#pragma unroll
    for (int r = 0; r < kRows; ++r) next_scale[r] = row + r < shape.rows ? scale[row + r] : 0;
  };
  load(work.first);
  float weights[kVector], dweights[kVector] = {};
  work.LoadWeights(weight, weights);
  for (int64_t row = work.first; row < shape.rows; row += work.step) {
    uint4 now_dy[kRows], now_x[kRows];
    float factors[kRows], along[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) now_dy[r] = next_dy[r], now_x[r] = next_x[r], factors[r] = next_scale[r];
    load(row + work.step);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      float dy_values[kVector], x_values[kVector];
      Widen(now_dy[r], dy_values);
      Widen(now_x[r], x_values);
      along[r] = 0;
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        const float term = dy_values[i] * x_values[i] * factors[r];
        dweights[i] += term;
        along[r] += term * weights[i];
      }
    }
    sum(along);
    uint4* out = reinterpret_cast<uint4*>(dx) + work.Vector(row);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (!work.exists || row + r >= shape.rows) break;
      float dy_values[kVector], x_values[kVector];
      Widen(now_dy[r], dy_values);
      Widen(now_x[r], x_values);
      const float mean = along[r] / static_cast<float>(shape.width);
#pragma unroll
      for (int i = 0; i < kVector; ++i)
        dy_values[i] = (dy_values[i] * weights[i] - x_values[i] * factors[r] * mean) * factors[r];
      out[r * work.row_vectors] = Narrow(dy_values);
    }
  }
  if (partials == nullptr || !work.exists) return;
  float* terms = partials + blockIdx.x * shape.width + work.channel;
#pragma unroll
  for (int i = 0; i < kVector; ++i) terms[i] = dweights[i];
}

}  // namespace

void LaunchRmsNorm(const __nv_bfloat16* x, const __nv_bfloat16* weight, float eps, __nv_bfloat16* y, float* scale,
                   const RowShape& shape, cudaStream_t stream) {
  if (shape.rows == 0 || shape.width == 0) return;
  const auto blocks = static_cast<unsigned>(Blocks(shape, BlocksHeld(shape, 1152, 3, 9)));
  RmsNormKernel<<<blocks, Threads(shape), 0, stream>>>(x, weight, eps, y, scale, shape);
}

int64_t RmsNormPartials(const RowShape& shape) { return Blocks(shape, BackwardBlocks(shape)); }

void LaunchRmsNormGradient(const __nv_bfloat16* dy, const __nv_bfloat16* x, const float* scale,
                           const __nv_bfloat16* weight, __nv_bfloat16* dx, float* partials, const RowShape& shape,
                           cudaStream_t stream) {
  if (shape.rows == 0 || shape.width == 0) return;
  const auto blocks = static_cast<unsigned>(RmsNormPartials(shape));
  RmsNormGradientKernel<<<blocks, Threads(shape), 0, stream>>>(dy, x, scale, weight, dx, partials, shape);
}

}  // namespace planwright::executor::ops
