// RMS norm and its backward (rms_norm.h).
#include "executor/kernels/rms_norm.h"
#include "executor/kernels/row_gradients.cuh"
#include "executor/kernels/wide_rows.cuh"

namespace planwright::executor::ops {
namespace {

constexpr int kHeldThreads = 1152;  // of a multiprocessor that works forward, in blocks of few threads

template <int threads>
__global__ void __launch_bounds__(threads, threads == kFewThreads ? kHeldThreads / kFewThreads : 1)
    RmsNormKernel(const __nv_bfloat16* x, const __nv_bfloat16* weight, float eps, __nv_bfloat16* y, float* scale,
                  RowShape shape) {
  __shared__ Slots<kRows> slots[1];
  TeamSums<kRows> sum(slots);
  const ThreadWork work(shape);
  uint4 next[kRows];
  work.Load(x, work.first, shape.rows, next);
  float weights[kVector];
  work.LoadWeights(weight, weights);
  const float share = 1 / static_cast<float>(shape.width);
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
      const float factor = rsqrtf(squares[r] * share + eps);
#pragma unroll
      for (int i = 0; i < kVector; ++i) values[r][i] *= factor * weights[i];
      if (work.exists) out[r * work.row_vectors] = Narrow(values[r]);
      if (threadIdx.x == 0) scale[row + r] = factor;
    }
  }
}

// With u = x scale and du = dy weight: dx = (du - u mean(du u)) scale, and what stands `beside` is added if `adds`.
template <int threads, bool adds>
__global__ void __launch_bounds__(threads, kHeldBlocks<threads>)
    RmsNormGradientKernel(const __nv_bfloat16* dy, const __nv_bfloat16* x, const __nv_bfloat16* beside,
                          const float* scale, const __nv_bfloat16* weight, __nv_bfloat16* dx, float* partials,
                          RowShape shape) {
  extern __shared__ uint4 copies[];
  __shared__ Slots<kRows> slots[kTeams<threads>];
  TeamSums<kRows, kTeams<threads>> sum(slots);
  const ThreadWork work(shape);
  constexpr int kRead = adds ? 3 : 2;
  RowsAhead<kRead> rows(copies, work, shape.rows);
  const __nv_bfloat16* read[kRead] = {dy, x};
  if constexpr (adds) read[2] = beside;
  float next_scale[kRows];
  const auto load_scale = [&](int64_t row) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) next_scale[r] = row + r < shape.rows ? scale[row + r] : 0;
  };
  rows.Begin(read, work.first);
  load_scale(work.first);
  float weights[kVector], dweights[1][kVector] = {};
  work.LoadWeights(weight, weights);
  const float share = 1 / static_cast<float>(shape.width);
  for (int64_t row = work.first; row < shape.rows; row += work.step) {
    rows.Turn(read, row + work.step);
    float factors[kRows], along[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) factors[r] = next_scale[r];
    load_scale(row + work.step);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      float dy_values[kVector], x_values[kVector];
      rows.Read(0, r, dy_values);
      rows.Read(1, r, x_values);
      along[r] = 0;
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        const float term = dy_values[i] * x_values[i] * factors[r];
        dweights[0][i] += term;
        along[r] += term * weights[i];
      }
    }
    sum(along);
    uint4* out = reinterpret_cast<uint4*>(dx) + work.Vector(row);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (!work.exists || row + r >= shape.rows) break;
      float dy_values[kVector], x_values[kVector], others[kVector] = {};
      rows.Read(0, r, dy_values);
      rows.Read(1, r, x_values);
      if constexpr (adds) rows.Read(2, r, others);
      const float of_x = -factors[r] * factors[r] * (along[r] * share);
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        const float rest = adds ? x_values[i] * of_x + others[i] : x_values[i] * of_x;
        dy_values[i] = dy_values[i] * (weights[i] * factors[r]) + rest;
      }
      out[r * work.row_vectors] = Narrow(dy_values);
    }
  }
  if (partials != nullptr) LeaveSums(dweights, copies, work, shape, partials);
}

template <bool adds, typename... Arguments>
void LaunchGradient(const RowShape& shape, cudaStream_t stream, Arguments... arguments) {
  LaunchRowGradient<adds ? 3 : 2>(
      HasFewThreads(shape) ? RmsNormGradientKernel<kFewThreads, adds> : RmsNormGradientKernel<kMostThreads, adds>,
      shape, stream, arguments..., shape);
}

}  // namespace

void LaunchRmsNorm(const __nv_bfloat16* x, const __nv_bfloat16* weight, float eps, __nv_bfloat16* y, float* scale,
                   const RowShape& shape, cudaStream_t stream) {
  if (shape.rows == 0 || shape.width == 0) return;
  const auto blocks = static_cast<unsigned>(Blocks(shape, BlocksHeld(shape, kHeldThreads, 3, 9)));
  const auto kernel = HasFewThreads(shape) ? RmsNormKernel<kFewThreads> : RmsNormKernel<kMostThreads>;
  kernel<<<blocks, Threads(shape), 0, stream>>>(x, weight, eps, y, scale, shape);
}

int64_t RmsNormPartials(const RowShape& shape) { return GradientBlocks(shape); }

void LaunchRmsNormGradient(const __nv_bfloat16* dy, const __nv_bfloat16* x, const float* scale,
                           const __nv_bfloat16* weight, const __nv_bfloat16* beside, __nv_bfloat16* dx, float* partials,
                           const RowShape& shape, cudaStream_t stream) {
  if (shape.rows == 0 || shape.width == 0) return;
  if (beside != nullptr) {
    LaunchGradient<true>(shape, stream, dy, x, beside, scale, weight, dx, partials);
  } else {
    LaunchGradient<false>(shape, stream, dy, x, beside, scale, weight, dx, partials);
  }
}

}  // namespace planwright::executor::ops
