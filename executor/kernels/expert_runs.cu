// Runs of expert rows (executor/kernels/expert_runs.h). One warp adds up 32 counts at a time.
#include "executor/kernels/expert_runs.h"
#include "executor/kernels/row_math.cuh"

namespace planwright::executor::ops {
namespace {

__global__ void __launch_bounds__(kWarp)
    EndsOfRunsKernel(const int64_t* counts, int64_t runs, int64_t rows, int* ends) {
  const int lane = static_cast<int>(threadIdx.x);
  int64_t before = 0;
  for (int64_t first = 0; first < runs; first += kWarp) {
    int64_t sum = first + lane < runs ? counts[first + lane] : 0;  // over this lane and the lanes below
#pragma unroll
    for (int offset = 1; offset < kWarp; offset *= 2) {
      const int64_t other = __shfl_up_sync(kAllLanes, sum, offset);
      if (lane >= offset) sum += other;
    }
    if (first + lane < runs) ends[first + lane] = static_cast<int>(before + sum);
    before += __shfl_sync(kAllLanes, sum, kWarp - 1);
  }
  if (before != rows) __trap();
}

}  // namespace

void LaunchEndsOfRuns(const int64_t* counts, int64_t runs, int64_t rows, int* ends, cudaStream_t stream) {
  EndsOfRunsKernel<<<1, kWarp, 0, stream>>>(counts, runs, rows, ends);
}

}  // namespace planwright::executor::ops
