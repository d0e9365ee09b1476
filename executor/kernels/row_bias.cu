// A bias of rows and its gradient (row_bias.h). There is nothing to compute, so more is under way than for norms.
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

// Narrow rows have teams, so that a block, which leaves one row of partial sums, takes many of them.
constexpr int kSummedRows = 4;  // at a time
constexpr int kTeamedThreads = 512, kHeldThreads = 1024;

int Teams(const RowShape& shape) {
  const int fit = kTeamedThreads / Threads(shape);
  return fit < 1 ? 1 : fit;
}

__global__ void __launch_bounds__(kMostThreads)
    RowBiasGradientKernel(const __nv_bfloat16* dy, float* partials, RowShape shape) {
  __shared__ float of_teams[kVector][kTeamedThreads];
  const ThreadWork<kSummedRows> work(shape);
  float sums[kVector] = {};
  uint4 next[kSummedRows];
  work.Load(dy, work.first, shape.rows, next);
  for (int64_t row = work.first; row < shape.rows; row += work.step) {
    uint4 now[kSummedRows];
#pragma unroll
    for (int r = 0; r < kSummedRows; ++r) now[r] = next[r];
    work.Load(dy, row + work.step, shape.rows, next);
#pragma unroll
    for (int r = 0; r < kSummedRows; ++r) {
      float values[kVector];
      Widen(now[r], values);
#pragma unroll
      for (int i = 0; i < kVector; ++i) sums[i] += values[i];
    }
  }
  if (blockDim.y > 1) {
#pragma unroll
    for (int i = 0; i < kVector; ++i) of_teams[i][threadIdx.y * blockDim.x + threadIdx.x] = sums[i];
    __syncthreads();
  }
  if (threadIdx.y > 0 || !work.exists) return;
  float* terms = partials + blockIdx.x * shape.width + work.channel;
#pragma unroll
  for (int i = 0; i < kVector; ++i) {
    for (int team = 1; team < static_cast<int>(blockDim.y); ++team)
      sums[i] += of_teams[i][team * blockDim.x + threadIdx.x];
    terms[i] = sums[i];
  }
}

}  // namespace

void LaunchAddRowBias(const __nv_bfloat16* x, const __nv_bfloat16* y, const __nv_bfloat16* bias, __nv_bfloat16* sum,
                      const RowShape& shape, cudaStream_t stream) {
  if (shape.rows == 0 || shape.width == 0) return;
  const auto blocks = static_cast<unsigned>(Blocks(shape, kAddBlocks));
  AddRowBiasKernel<<<blocks, Threads(shape), 0, stream>>>(x, y, bias, sum, shape);
}

int64_t RowBiasPartials(const RowShape& shape) {
  const int teams = Teams(shape);
  const int64_t fit = kHeldThreads / (teams * Threads(shape)), rows = teams * kSummedRows;
  const int64_t most = kMultiprocessors * (fit < 1 ? 1 : fit), needed = (shape.rows + rows - 1) / rows;
  return needed < most ? needed : most;
}

void LaunchRowBiasGradient(const __nv_bfloat16* dy, float* partials, const RowShape& shape, cudaStream_t stream) {
  if (shape.rows == 0 || shape.width == 0) return;
  const auto blocks = static_cast<unsigned>(RowBiasPartials(shape));
  RowBiasGradientKernel<<<blocks, dim3(Threads(shape), Teams(shape)), 0, stream>>>(dy, partials, shape);
}

}  // namespace planwright::executor::ops
