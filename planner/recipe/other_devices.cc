#include "planner/recipe/other_devices.h"

#include "planner/base/text/text.h"
#include "planner/recipe/field_words.h"

namespace planwright {
namespace {

// Memory in GB, dense bf16 in TFLOP/s, memory bandwidth, link and network in GB/s, one direction. What data sheets give
// with sparsity, or for both directions, is halved. The network is no figure of a device: one port for each, of 200
// Gbit/s beside an A100 and 400 beside the others, as in planner/predict/rates/device.cc.
struct OtherDevice {
  std::string_view name;  // a pattern (IsLike)
  int memory, peak, bandwidth, link, network;
};
constexpr OtherDevice kOtherDevices[] = {
    // NVIDIA A100 Tensor Core GPU data sheet, June 2021, 80 GB PCIe; a bridge of two has 600 GB/s.
    {"*a100*pcie*", 80, 312, 1935, 300, 25},
    // NVIDIA H100 Tensor Core GPU data sheet, 2022, PCIe: 1,513 TFLOP/s with sparsity, a bridge of two has 600 GB/s;
    // memory as in the product brief PB-11133-001, November 2022.
    {"*h100*pcie*", 80, 756, 2000, 300, 50},
    // NVIDIA H100 Tensor Core GPU data sheet, 2024, NVL: 1,671 TFLOP/s with sparsity, a bridge of two has 600 GB/s.
    {"*h100*nvl*", 94, 835, 3900, 300, 50},
    // NVIDIA H200 Tensor Core GPU data sheet, November 2024, NVL: 1,671 TFLOP/s with sparsity, a bridge of two or four
    // has 900 GB/s for each.
    {"*h200*nvl*", 141, 835, 4800, 450, 50},
    // NVIDIA GB200 NVL72 data sheet, 2024, a 72nd of the rack: 13.4 TB, 576 TB/s, 360 PFLOP/s with sparsity, 130 TB/s
    // of NVLink.
    {"*gb200*", 186, 2500, 8000, 900, 50},
    // NVIDIA DGX B200 data sheet, 2024, an eighth of the system: 1,440 GB, 144 PFLOP/s of fp4 with sparsity, of which
    // bf16 is a quarter, 14.4 TB/s of NVLink. It rounds memory up to 8 TB/s: a B200 has 7,680 bits at 3,996 MHz, twice
    // each.
    {"*b200*", 180, 2250, 7672, 900, 50},
    // AMD Instinct MI300X data sheet, December 2023: 1,307.4 TFLOP/s, 5.3 TB/s, seven links of 128 GB/s.
    {"*mi300x*", 192, 1307, 5300, 448, 50},
    // NVIDIA Ada GPU architecture, 2022, GeForce RTX 4090: 165.2 TFLOP/s of bf16 with sums in fp32; no NVLink, 16 lanes
    // of PCIe 4.0.
    {"*4090*", 24, 165, 1008, 32, 50},
};

}  // namespace

std::string FiguresOfDevice(std::string_view name) {
  for (const OtherDevice& device : kOtherDevices) {
    if (!IsLike(name, device.name)) continue;
    return Cat("{memory: ", device.memory, ", peak: ", device.peak, ", bandwidth: ", device.bandwidth,
               ", link: ", device.link, ", network: ", device.network, "}");
  }
  return "";
}

}  // namespace planwright
