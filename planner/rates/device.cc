#include "planner/rates/device.h"

namespace planwright {
namespace {

constexpr int64_t kMiB = 1 << 20;

// Memory: cudaDeviceProp::totalGlobalMem. An H200 reports 139.8 GiB. Cards of 80 GB report 79.1 to 79.3 GiB, depending
// on the driver; the table has the least. Peaks: NVIDIA's data sheets, without sparsity. Links: NVLink of the data
// sheets; the network of DGX systems, 200 Gbit/s for a GPU of the A100 and 400 of the others.
constexpr Device kDevices[] = {
    {"none", 0, 0, 0, 0, 0, 0, 0},
    {"a100_sxm", 80998 * kMiB, 312e12, 19.5e12, 19.5e12, 2.039e12, 300e9, 25e9},
    {"h100_sxm", 80998 * kMiB, 989.4e12, 66.9e12, 66.9e12, 3.35e12, 450e9, 50e9},
    {"h200_sxm", 143155 * kMiB, 989.4e12, 66.9e12, 66.9e12, 4.8e12, 450e9, 50e9},
};

}  // namespace

const Device& DeviceOf(std::string_view gpu) {
  for (const Device& device : kDevices) {
    if (device.gpu == gpu) return device;
  }
  return kDevices[0];
}

}  // namespace planwright
