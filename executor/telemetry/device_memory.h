// Memory of a rank's GPU, as LibTorch's allocator and CUDA count it. Nothing here waits for the device.
#pragma once

#include "planner/wire/records/step_record.h"

namespace planwright::executor {

// Only in builds with CUDA. `device`: index of the GPU, which must be the current one.
DeviceMemory MeasureDeviceMemory(int device);

}  // namespace planwright::executor
