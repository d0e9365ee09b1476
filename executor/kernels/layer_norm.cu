// LayerNorm and its backward (layer_norm.h).
#include "executor/kernels/layer_norm.h"
#include "executor/kernels/row_gradients.cuh"
#include "executor/kernels/wide_rows.cuh"

namespace planwright::executor::ops {
namespace {

// The deviation is summed around the mean, which is known before: a difference of large sums would lose it.
__global__ void __launch_bounds__(kMostThreads)
    LayerNormKernel(const __nv_bfloat16* x, LayerNormWeights parameters, float eps, __nv_bfloat16* y, float* mean,
                    float* scale, RowShape shape) {
  __shared__ Slots<kRows> slots[1];
  TeamSums<kRows> sum(slots);
  const ThreadWork work(shape);
  uint4 next[kRows];
  work.Load(x, work.first, shape.rows, next);
  float weights[kVector], biases[kVector];
  work.LoadWeights(parameters.weight, weights);
  work.LoadWeights(parameters.bias, biases);
  const float share = 1 / static_cast<float>(shape.width);
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
      means[r] *= share, squares[r] = 0;
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
      const float factor = rsqrtf(squares[r] * share + eps);
#pragma unroll
      for (int i = 0; i < kVector; ++i) values[r][i] = values[r][i] * factor * weights[i] + biases[i];
      if (work.exists) out[r * work.row_vectors] = Narrow(values[r]);
      if (threadIdx.x == 0) mean[row + r] = means[r], scale[row + r] = factor;
    }
  }
}

// With u = (x - mean) scale and du = dy weight: dx = (du - mean(du) - u mean(du u)) scale, and what stands `beside` is
// added if `adds`.
template <int threads, bool adds>
__global__ void __launch_bounds__(threads, kHeldBlocks<threads>)
    LayerNormGradientKernel(const __nv_bfloat16* dy, const __nv_bfloat16* x, const __nv_bfloat16* beside,
                            const float* mean, const float* scale, const __nv_bfloat16* weight, __nv_bfloat16* dx,
                            float* partials, RowShape shape) {
  extern __shared__ uint4 copies[];
  __shared__ Slots<2 * kRows> slots[kTeams<threads>];
  TeamSums<2 * kRows, kTeams<threads>> sum(slots);
  const ThreadWork work(shape);
  constexpr int kRead = adds ? 3 : 2;
  RowsAhead<kRead> rows(copies, work, shape.rows);
  const __nv_bfloat16* read[kRead] = {dy, x};
  if constexpr (adds) read[2] = beside;
  float next_mean[kRows], next_scale[kRows];
  const auto load_statistics = [&](int64_t row) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      next_mean[r] = row + r < shape.rows ? mean[row + r] : 0;
      next_scale[r] = row + r < shape.rows ? scale[row + r] : 0;
    }
  };
  rows.Begin(read, work.first);
  load_statistics(work.first);
  float weights[kVector], gradients[2][kVector] = {};  // of weight and bias
  work.LoadWeights(weight, weights);
  const float share = 1 / static_cast<float>(shape.width);
  for (int64_t row = work.first; row < shape.rows; row += work.step) {
    rows.Turn(read, row + work.step);
    float means[kRows], factors[kRows];
    float sums[2 * kRows];  // of du, and of du u
#pragma unroll
    for (int r = 0; r < kRows; ++r) means[r] = next_mean[r], factors[r] = next_scale[r];
    load_statistics(row + work.step);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      float dy_values[kVector], x_values[kVector];
      rows.Read(0, r, dy_values);
      rows.Read(1, r, x_values);
      sums[r] = sums[kRows + r] = 0;
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        const float unit = (x_values[i] - means[r]) * factors[r], dunit = dy_values[i] * weights[i];
        gradients[0][i] += dy_values[i] * unit, gradients[1][i] += dy_values[i];
        sums[r] += dunit, sums[kRows + r] += dunit * unit;
      }
    }
    sum(sums);
    uint4* out = reinterpret_cast<uint4*>(dx) + work.Vector(row);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (!work.exists || row + r >= shape.rows) break;
      float dy_values[kVector], x_values[kVector], others[kVector] = {};
      rows.Read(0, r, dy_values);
      rows.Read(1, r, x_values);
      if constexpr (adds) rows.Read(2, r, others);
      const float of_x = -factors[r] * factors[r] * (sums[kRows + r] * share), even = -factors[r] * (sums[r] * share);
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        const float rest = adds ? even + others[i] : even;
        dy_values[i] = dy_values[i] * (weights[i] * factors[r]) + ((x_values[i] - means[r]) * of_x + rest);
      }
      out[r * work.row_vectors] = Narrow(dy_values);
    }
  }
  if (partials != nullptr) LeaveSums(gradients, copies, work, shape, partials);
}

template <bool adds, typename... Arguments>
void LaunchGradient(const RowShape& shape, cudaStream_t stream, Arguments... arguments) {
  LaunchRowGradient<adds ? 3 : 2>(
      HasFewThreads(shape) ? LayerNormGradientKernel<kFewThreads, adds> : LayerNormGradientKernel<kMostThreads, adds>,
      shape, stream, arguments..., shape);
}

}  // namespace

void LaunchLayerNorm(const __nv_bfloat16* x, const LayerNormWeights& weights, float eps, __nv_bfloat16* y, float* mean,
                     float* scale, const RowShape& shape, cudaStream_t stream) {
  if (shape.rows == 0 || shape.width == 0) return;
  const auto blocks = static_cast<unsigned>(Blocks(shape, BlocksHeld(shape, 896, 2, 7)));
  LayerNormKernel<<<blocks, Threads(shape), 0, stream>>>(x, weights, eps, y, mean, scale, shape);
}

int64_t LayerNormPartials(const RowShape& shape) { return GradientBlocks(shape); }

void LaunchLayerNormGradient(const __nv_bfloat16* dy, const __nv_bfloat16* x, const float* mean, const float* scale,
                             const __nv_bfloat16* weight, const __nv_bfloat16* beside, __nv_bfloat16* dx,
                             float* partials, const RowShape& shape, cudaStream_t stream) {
  if (shape.rows == 0 || shape.width == 0) return;
  if (beside != nullptr) {
    LaunchGradient<true>(shape, stream, dy, x, beside, mean, scale, weight, dx, partials);
  } else {
    LaunchGradient<false>(shape, stream, dy, x, beside, mean, scale, weight, dx, partials);
  }
}

}  // namespace planwright::executor::ops
