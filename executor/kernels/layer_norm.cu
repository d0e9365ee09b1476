// LayerNorm and its backward (layer_norm.h).
#include "executor/kernels/layer_norm.h"
#include "executor/kernels/wide_rows.cuh"

namespace planwright::executor::ops {
namespace {

// The deviation is summed around the mean, which is known before: a difference of large sums would lose it.
__global__ void __launch_bounds__(kMostThreads)
    LayerNormKernel(const __nv_bfloat16* x, LayerNormWeights parameters, float eps, __nv_bfloat16* y, float* mean,
                    float* scale, RowShape shape) {
  __shared__ Slots<kRows> slots;
  BlockSums<kRows> sum(slots);
  const ThreadWork work(shape);
  uint4 next[kRows];
  work.Load(x, work.first, shape.rows, next);
  float weights[kVector], biases[kVector];
  work.LoadWeights(parameters.weight, weights);
  work.LoadWeights(parameters.bias, biases);
  const auto width = static_cast<float>(shape.width);
  for (int64_t row = work.first; row < shape.rows; row += work.step) {
    float values[kRows][kVector], means[kRows], squares[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      Widen(next[r], values[r]);
      means[r] = 0;
#pragma unroll
      for (int i = 0; i < kVector; ++i) means[r] += values[r][i];
    }
    work.Load(x, row + work.step, shape.rows, next);
    sum(means);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      means[r] /= width, squares[r] = 0;
      if (!work.exists) continue;
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        values[r][i] -= means[r];
        squares[r] += values[r][i] * values[r][i];
      }
    }
    sum(squares);
    uint4* out = reinterpret_cast<uint4*>(y) + work.Vector(row);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (row + r >= shape.rows) break;
      const float factor = rsqrtf(squares[r] / width + eps);
#pragma unroll
      for (int i = 0; i < kVector; ++i) values[r][i] = values[r][i] * factor * weights[i] + biases[i];
      if (work.exists) out[r * work.row_vectors] = Narrow(values[r]);
      if (threadIdx.x == 0) mean[row + r] = means[r], scale[row + r] = factor;
    }
  }
}

// With u = (x - mean) scale and du = dy weight: dx = (du - mean(du) - u mean(du u)) scale. Blocks of few threads have
// registers for all of it.
template <int threads>
__global__ void __launch_bounds__(threads)
    LayerNormGradientKernel(const __nv_bfloat16* dy, const __nv_bfloat16* x, const float* mean, const float* scale,
                            const __nv_bfloat16* weight, __nv_bfloat16* dx, float* partials, RowShape shape) {
  __shared__ Slots<2 * kRows> slots;
  BlockSums<2 * kRows> sum(slots);
  const ThreadWork work(shape);
  uint4 next_dy[kRows], next_x[kRows];
  float next_mean[kRows], next_scale[kRows];
  const auto load = [&](int64_t row) {
    work.Load(dy, row, shape.rows, next_dy);
    work.Load(x, row, shape.rows, next_x);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      next_mean[r] = row + r < shape.rows ? mean[row + r] : 0;
      next_scale[r] = row + r < shape.rows ? scale[row + r] : 0;
    }
  };
  load(work.first);
  float weights[kVector], dweights[kVector] = {}, dbiases[kVector] = {};
  work.LoadWeights(weight, weights);
  const auto width = static_cast<float>(shape.width);
  for (int64_t row = work.first; row < shape.rows; row += work.step) {
    uint4 now_dy[kRows], now_x[kRows];
    float means[kRows], factors[kRows];
    float sums[2 * kRows];  // of du, and of du u
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      now_dy[r] = next_dy[r], now_x[r] = next_x[r];
      means[r] = next_mean[r], factors[r] = next_scale[r];
    }
    load(row + work.step);
    const auto unit = [&](int r, float value) { return (value - means[r]) * factors[r]; };
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      float dy_values[kVector], x_values[kVector];
      Widen(now_dy[r], dy_values);
      Widen(now_x[r], x_values);
      sums[r] = sums[kRows + r] = 0;
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        const float term = dy_values[i] * unit(r, x_values[i]);
        dweights[i] += term, dbiases[i] += dy_values[i];
        sums[r] += dy_values[i] * weights[i], sums[kRows + r] += term * weights[i];
      }
    }
    sum(sums);
    uint4* out = reinterpret_cast<uint4*>(dx) + work.Vector(row);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (!work.exists || row + r >= shape.rows) break;
      float dy_values[kVector], x_values[kVector];
      Widen(now_dy[r], dy_values);
      Widen(now_x[r], x_values);
      const float even = sums[r] / width, along = sums[kRows + r] / width;
#pragma unroll
      for (int i = 0; i < kVector; ++i)
        dy_values[i] = (dy_values[i] * weights[i] - even - unit(r, x_values[i]) * along) * factors[r];
      out[r * work.row_vectors] = Narrow(dy_values);
    }
  }
  if (partials == nullptr || !work.exists) return;
  float* terms = partials + 2 * blockIdx.x * shape.width + work.channel;
#pragma unroll
  for (int i = 0; i < kVector; ++i) terms[i] = dweights[i], terms[shape.width + i] = dbiases[i];
}

}  // namespace

void LaunchLayerNorm(const __nv_bfloat16* x, const LayerNormWeights& weights, float eps, __nv_bfloat16* y, float* mean,
                     float* scale, const RowShape& shape, cudaStream_t stream) {
  if (shape.rows == 0 || shape.width == 0) return;
  const auto blocks = static_cast<unsigned>(Blocks(shape, BlocksHeld(shape, 896, 2, 7)));
  LayerNormKernel<<<blocks, Threads(shape), 0, stream>>>(x, weights, eps, y, mean, scale, shape);
}

int64_t LayerNormPartials(const RowShape& shape) { return Blocks(shape, BackwardBlocks(shape)); }

void LaunchLayerNormGradient(const __nv_bfloat16* dy, const __nv_bfloat16* x, const float* mean, const float* scale,
                             const __nv_bfloat16* weight, __nv_bfloat16* dx, float* partials, const RowShape& shape,
                             cudaStream_t stream) {
  if (shape.rows == 0 || shape.width == 0) return;
  const auto blocks = static_cast<unsigned>(LayerNormPartials(shape));
  constexpr int kFewThreads = 384;
  const auto kernel =
      Threads(shape) <= kFewThreads ? LayerNormGradientKernel<kFewThreads> : LayerNormGradientKernel<kMostThreads>;
  kernel<<<blocks, Threads(shape), 0, stream>>>(dy, x, mean, scale, weight, dx, partials, shape);
}

}  // namespace planwright::executor::ops
