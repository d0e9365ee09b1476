#include "planner/estimate/device.h"

namespace planwright {
namespace {

constexpr int64_t kMiB = 1 << 20;

// Memory: cudaDeviceProp::totalGlobalMem. An H200 reports 139.8 GiB. Cards of 80 GB report 79.1 to 79.3 GiB, depending
// on the driver; the table has the least. Peaks: NVIDIA's data sheets, without sparsity.
constexpr Device kDevices[] = {
    {"none", 0, 0, 0, 0},
    {"a100_sxm", 80998 * kMiB, 312e12, 19.5e12, 19.5e12},
    {"h100_sxm", 80998 * kMiB, 989.4e12, 66.9e12, 66.9e12},
    {"h200_sxm", 143155 * kMiB, 989.4e12, 66.9e12, 66.9e12},
};

}  // namespace

const Device& DeviceOf(std::string_view gpu) {
  for (const Device& device : kDevices) {
    if (device.gpu == gpu) return device;
  }
  return kDevices[0];
}

}  // namespace planwright
