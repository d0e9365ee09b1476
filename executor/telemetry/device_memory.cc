#include "executor/telemetry/device_memory.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <cuda_runtime_api.h>

namespace planwright::executor {

DeviceMemory MeasureDeviceMemory(int device) {
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(static_cast<c10::DeviceIndex>(device));
  size_t free = 0, total = 0;
  C10_CUDA_CHECK(cudaMemGetInfo(&free, &total));
  // [0]: over its pools of small and of large blocks.
  return {stats.allocated_bytes[0].peak, stats.reserved_bytes[0].peak, static_cast<int64_t>(total - free)};
}

DeviceRoom MeasureDeviceRoom() {
  size_t free = 0, total = 0;
  C10_CUDA_CHECK(cudaMemGetInfo(&free, &total));
  return {static_cast<int64_t>(total), static_cast<int64_t>(free)};
}

}  // namespace planwright::executor
