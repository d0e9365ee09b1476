// Products of runs of rows, each run with a matrix of its own, on Hopper's tensor cores: the rows of experts, forward
// and backward. Only the GPU knows how long the runs are.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace planwright::executor::ops {

// out = the rows of each run of x times the run's matrix [inner, width]. All tensors are contiguous, on the current
// device.
struct RunProducts {
  __nv_bfloat16* out = nullptr;             // [rows, width]
  const __nv_bfloat16* x = nullptr;         // [rows, inner]
  const __nv_bfloat16* matrices = nullptr;  // [runs, inner, width], or the transposed ones, [runs, width, inner]
  bool transposed = false;
  // [parts, runs], on the device, ascending: the row behind each part of each run. A run's rows are those of all of its
  // parts. Both may be empty. The last end may be less than `rows`: rows behind it have no influence and are not
  // written.
  const int* ends = nullptr;
  int64_t parts = 1, runs = 0, rows = 0, inner = 0, width = 0;
};

// Whether the kernel takes a task: compute capability 9.0, inner a multiple of 64 and width of 8, tensors on 16 bytes,
// at least one row, run and element, at most 1,024 parts of all runs, and fewer than 2^31 rows of each tensor.
bool HopperTakes(const RunProducts& task);

// Products are exact, sums are fp32 in an order that only `inner` decides, and are rounded to bf16 once: the same task
// gives the same bits. Nothing is allocated and the host does not wait. The result is an error of the preparation (no
// driver function for tensor maps, a map that the driver refuses); like for any kernel, an error of the launch is
// CUDA's last error.
cudaError_t LaunchProductsOfRuns(const RunProducts& task, cudaStream_t stream);

}  // namespace planwright::executor::ops
