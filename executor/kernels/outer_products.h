// Sums of outer products over runs of rows, on tensor cores: the weight gradients of experts. Only the GPU knows how
// long the runs are. The Hopper form is the fast one; the simple form serves other GPUs and judges it.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace planwright::executor::ops {

// sums[e] += a_e^T b_e over the rows of run e, or sums[e] = a_e^T b_e. All matrices are row-major and contiguous, on
// the current device.
struct OuterProducts {
  float* sums = nullptr;             // [runs, inner, width]
  const __nv_bfloat16* a = nullptr;  // [rows, inner]
  const __nv_bfloat16* b = nullptr;  // [rows, width]
  // [parts, runs], on the device, ascending: the row behind each part of each run. A run's rows are those of all of its
  // parts. Both may be empty. The last end may be less than `rows`: what stands in the rows behind it has no influence,
  // even if it is NaN.
  const int* ends = nullptr;
  int64_t parts = 1, runs = 0, rows = 0, inner = 0, width = 0;
  bool writes = false;  // what was in sums is not read; the sums of an empty run become 0
};

// Whether the forms below can take a task. Both need inner and width to be multiples of 8, a and b on 16 bytes, and at
// least one row, run and element. The simple form needs compute capability 8.0 or later, one part, at most 65,535 runs,
// and inner at most 8,388,480, and it adds. The Hopper form needs compute capability 9.0, sums on 16 bytes, at most
// 1,024 parts of all runs and fewer than 2^31 rows.
bool HopperTakes(const OuterProducts& task);
bool SimpleFormTakes(const OuterProducts& task);

// Products are exact, each run is summed in fp32 in registers in an order that only the lengths of its parts
// decide, and each element of sums is read, if it is, and written once: the same task gives the same bits. In the
// Hopper form one warp does both. Sums that are smaller than the smallest normal number are kept. Nothing is allocated
// and the host does not wait. The result is an error of the preparation (no driver function for tensor maps, a map that
// the driver refuses); like for any kernel, an error of the launch is CUDA's last error.
cudaError_t LaunchAddOuterProductsOfRuns(const OuterProducts& task, cudaStream_t stream);
cudaError_t LaunchAddOuterProductsOfRunsSimple(const OuterProducts& task, cudaStream_t stream);

}  // namespace planwright::executor::ops
