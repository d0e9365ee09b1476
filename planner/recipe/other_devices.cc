#include "planner/recipe/other_devices.h"

#include "absl/strings/ascii.h"
#include "planner/diagnostics/text.h"

namespace planwright {
namespace {

// Memory in GB, dense bf16 in TFLOP/s, memory bandwidth, link and network in GB/s, one direction. What data sheets give
// with sparsity, or for both directions, is halved. The network is one port of 400 Gbit/s for each device.
struct OtherDevice {
  std::string_view name;
  int memory, peak, bandwidth, link, network;
};
constexpr OtherDevice kOtherDevices[] = {
    {"a100_pcie", 80, 312, 1935, 300, 25},  // NVIDIA A100 data sheet, 2022; NVLink bridge of two
    {"h100_pcie", 80, 756, 2000, 300, 50},  // NVIDIA H100 PCIe product brief PB-11133; NVLink bridge of two
    {"h100_nvl", 94, 835, 3900, 300, 50},   // NVIDIA H100 data sheet, 2024; NVLink bridge of two
    {"h200_nvl", 141, 835, 4800, 450, 50},  // NVIDIA H200 data sheet, 2024; NVLink bridge of two or four
    {"b200", 180, 2250, 8000, 900, 50},     // NVIDIA DGX B200 data sheet, 2024: an eighth of the system
    {"gb200", 186, 2500, 8000, 900, 50},    // NVIDIA GB200 NVL72 data sheet, 2024: a 72nd of the rack
    {"mi300x", 192, 1307, 5300, 448, 50},   // AMD Instinct MI300X data sheet, 2023; seven links of Infinity Fabric
};

}  // namespace

std::string FiguresOfDevice(std::string_view name) {
  const std::string lower = absl::AsciiStrToLower(absl::string_view(name.data(), name.size()));
  for (const OtherDevice& device : kOtherDevices) {
    if (device.name != lower && lower != std::string(device.name) + "_sxm") continue;
    return Cat("{memory: ", device.memory, ", peak: ", device.peak, ", bandwidth: ", device.bandwidth,
               ", link: ", device.link, ", network: ", device.network, "}");
  }
  return "";
}

}  // namespace planwright
