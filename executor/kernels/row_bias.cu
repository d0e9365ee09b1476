// A bias of rows and its gradient (row_bias.h). There is nothing to compute, so more thread blocks than for norms are
// under way.
#include "executor/kernels/row_bias.h"
#include "executor/kernels/wide_rows.cuh"

namespace planwright::executor::ops {
namespace {

constexpr int64_t kAddBlocks = kMultiprocessors * 12;

__global__ void __launch_bounds__(kMostThreads)
    AddRowBiasKernel(const __nv_bfloat16* x, const __nv_bfloat16* y, const __nv_bfloat16* bias, __nv_bfloat16* sum,
                     RowShape shape) {
  const ThreadWork work(shape);
  float biases[kVector];
  work.LoadWeights(bias, biases);
  for (int64_t row = work.first; row < shape.rows; row += work.step) {
    uint4 of_x[kRows], of_y[kRows];
    work.Load(x, row, shape.rows, of_x);
    work.Load(y, row, shape.rows, of_y);
    uint4* out = reinterpret_cast<uint4*>(sum) + work.Vector(row);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (!work.exists || row + r >= shape.rows) break;
      float first[kVector], second[kVector];
      Widen(of_x[r], first);
      Widen(of_y[r], second);
#pragma unroll
      for (int i = 0; i < kVector; ++i) first[i] += second[i] + biases[i];
      out[r * work.row_vectors] = Narrow(first);
    }
  }
}

__global__ void __launch_bounds__(kMostThreads)
    RowBiasGradientKernel(const __nv_bfloat16* dy, float* partials, RowShape shape) {
  const ThreadWork work(shape);
  float sums[kVector] = {};
  uint4 next[kRows];
  work.Load(dy, work.first, shape.rows, next);
  for (int64_t row = work.first; row < shape.rows; row += work.step) {
    uint4 now[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) now[r] = next[r];
    work.Load(dy, row + work.step, shape.rows, next);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      float values[kVector];
      Widen(now[r], values);
#pragma unroll
      for (int i = 0; i < kVector; ++i) sums[i] += values[i];
    }
  }
  if (!work.exists) return;
  float* terms = partials + blockIdx.x * shape.width + work.channel;
#pragma unroll
  for (int i = 0; i < kVector; ++i) terms[i] = sums[i];
}

}  // namespace

void LaunchAddRowBias(const __nv_bfloat16* x, const __nv_bfloat16* y, const __nv_bfloat16* bias, __nv_bfloat16* sum,
                      const RowShape& shape, cudaStream_t stream) {
  if (shape.rows == 0 || shape.width == 0) return;
  const auto blocks = static_cast<unsigned>(Blocks(shape, kAddBlocks));
  AddRowBiasKernel<<<blocks, Threads(shape), 0, stream>>>(x, y, bias, sum, shape);
}

int64_t RowBiasPartials(const RowShape& shape) { return Blocks(shape, BlocksHeld(shape, 1024, 4, 8)); }

void LaunchRowBiasGradient(const __nv_bfloat16* dy, float* partials, const RowShape& shape, cudaStream_t stream) {
  if (shape.rows == 0 || shape.width == 0) return;
  const auto blocks = static_cast<unsigned>(RowBiasPartials(shape));
  RowBiasGradientKernel<<<blocks, Threads(shape), 0, stream>>>(dy, partials, shape);
}

}  // namespace planwright::executor::ops
