#include "planner/predict/rates/device.h"

#include <algorithm>

namespace planwright {
namespace {

constexpr int64_t kMiB = 1 << 20;

// Memory: cudaDeviceProp::totalGlobalMem. An H200 reports 139.8 GiB. Cards of 80 GB report 79.1 to 79.3 GiB, depending
// on the driver; the table has the least. Peaks: NVIDIA's data sheets, without sparsity. Links: NVLink of the data
// sheets; the network of DGX systems, 200 Gbit/s for a GPU of the A100 and 400 of the others. To the host: PCIe of 16
// lanes, generation 4 of the A100 and 5 of the others.
constexpr Device kDevices[] = {
    {"none", 0, 0, 0, 0, 0, 0, 0, 0},
    {"a100_sxm", 80998 * kMiB, 312e12, 19.5e12, 19.5e12, 2.039e12, 300e9, 25e9, 31.5e9},
    {"h100_sxm", 80998 * kMiB, 989.4e12, 66.9e12, 66.9e12, 3.35e12, 450e9, 50e9, 63e9, true},
    {"h200_sxm", 143155 * kMiB, 989.4e12, 66.9e12, 66.9e12, 4.8e12, 450e9, 50e9, 63e9, true},
    {"other", 0, 0, 0, 0, 0, 0, 0, 0},  // cluster.device has its figures
};

}  // namespace

const Device& DeviceOf(std::string_view gpu) {
  for (const Device& device : kDevices) {
    if (device.gpu == gpu) return device;
  }
  return kDevices[0];
}

Device DeviceOf(const Cluster& cluster) {
  Device device = DeviceOf(cluster.gpu);
  const DeviceFigures& own = cluster.device;
  // Far above every device, and sums of such numbers do not overflow.
  if (own.memory > 0) device.memory = static_cast<int64_t>(std::min(own.memory, 1e6) * 1e9);
  if (own.peak > 0) device.bf16 = device.fp32 = device.fp64 = own.peak * 1e12;
  if (own.bandwidth > 0) device.memory_speed = own.bandwidth * 1e9;
  if (own.link > 0) device.node_link = own.link * 1e9;
  if (own.network > 0) device.network = own.network * 1e9;
  return device;
}

}  // namespace planwright
