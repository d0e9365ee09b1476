// Memory of a rank's GPU, as LibTorch's allocator and CUDA count it. Nothing here waits for the device.
#pragma once

#include <cstdint>

#include "planner/wire/records/step_record.h"

namespace planwright::executor {

// Bytes of the current device: all, and those that nobody has taken. Only in builds with CUDA.
struct DeviceRoom {
  int64_t total = 0, free = 0;
};
DeviceRoom MeasureDeviceRoom();

// Only in builds with CUDA. `device`: index of the GPU, which must be the current one.
DeviceMemory MeasureDeviceMemory(int device);

}  // namespace planwright::executor
