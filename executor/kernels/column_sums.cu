// Sums over partial sums (column_sums.h).
#include "executor/kernels/column_sums.h"

namespace planwright::executor::ops {
namespace {

// A thread block has 8 columns, 32 bytes of a row, so that there are blocks for all multiprocessors, and sums every
// 64th row in each of its lanes. Loads of kAtOnce rows are under way together.
constexpr int kColumns = 8, kLanes = 64, kAtOnce = 8;
constexpr int kWarps = kColumns * kLanes / 32;

__global__ void __launch_bounds__(kColumns* kLanes)
    AddColumnSumsKernel(const float* partials, int64_t rows, float* first, int64_t first_width, float* second,
                        int64_t columns) {
  __shared__ float sums[kWarps][kColumns];
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kColumns + threadIdx.x;
  float sum = 0;
  if (column < columns) {
    for (int64_t row = threadIdx.y; row < rows; row += kLanes * kAtOnce) {
      float terms[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int64_t at = row + i * kLanes;
        terms[i] = at < rows ? partials[at * columns + column] : 0;
      }
#pragma unroll
      for (float term : terms) sum += term;
    }
  }
  // The four lanes of a warp.
  sum += __shfl_xor_sync(0xffffffffu, sum, kColumns);
  sum += __shfl_xor_sync(0xffffffffu, sum, 2 * kColumns);
  if (threadIdx.y % 4 == 0) sums[threadIdx.y / 4][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
  float total = 0;
#pragma unroll
  for (int warp = 0; warp < kWarps; ++warp) total += sums[warp][threadIdx.x];
  if (column < first_width) {
    first[column] += total;
  } else {
    second[column - first_width] += total;
  }
}

}  // namespace

void LaunchAddColumnSums(const float* partials, int64_t rows, float* first, int64_t first_width, float* second,
                         int64_t second_width, cudaStream_t stream) {
  const int64_t columns = first_width + second_width;
  if (rows == 0 || columns == 0) return;
  const auto blocks = static_cast<unsigned>((columns + kColumns - 1) / kColumns);
  AddColumnSumsKernel<<<blocks, dim3(kColumns, kLanes), 0, stream>>>(partials, rows, first, first_width, second,
                                                                     columns);
}

}  // namespace planwright::executor::ops
