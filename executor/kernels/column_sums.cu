// Sums over partial sums (column_sums.h).
#include "executor/kernels/column_sums.h"

namespace planwright::executor::ops {
namespace {

// A thread block has 32 columns, so that a warp reads 128 bytes of a row, and sums every 16th row in each of its warps.
constexpr int kColumns = 32, kLanes = 16;

__global__ void __launch_bounds__(kColumns* kLanes)
    AddColumnSumsKernel(const float* partials, int64_t rows, float* first, int64_t first_width, float* second,
                        int64_t columns) {
  __shared__ float sums[kLanes][kColumns];
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kColumns + threadIdx.x;
  float sum = 0;
  if (column < columns) {
#pragma unroll 8
    for (int64_t row = threadIdx.y; row < rows; row += kLanes) sum += partials[row * columns + column];
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
  float total = 0;
#pragma unroll
  for (int lane = 0; lane < kLanes; ++lane) total += sums[lane][threadIdx.x];
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
