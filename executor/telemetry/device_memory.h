// Memory of a rank's GPU, as LibTorch's allocator and CUDA count it. Nothing here waits for the device.
#pragma once

#include <cstdint>

namespace planwright::executor {

// In bytes. Peaks are since the start of the process.
struct DeviceMemory {
  int64_t tensors_peak = 0;   // the most that tensors held at one time
  int64_t reserved_peak = 0;  // the most that the allocator had taken from the driver
  int64_t used = 0;           // of the whole device: tensors, context, libraries, and other processes
};

// Only in builds with CUDA. `device`: index of the GPU, which must be the current one.
DeviceMemory MeasureDeviceMemory(int device);

}  // namespace planwright::executor
