// What a device of `cluster.gpu` has.
#pragma once

#include <cstdint>
#include <string_view>

namespace planwright {

struct Device {
  std::string_view gpu;
  int64_t memory = 0;  // bytes that CUDA reports as the device's total; 0: no limit is known (CPU ranks)
  double bf16 = 0, fp32 = 0, fp64 = 0;  // dense peak, FLOP/s; fp32 without TF32

  double peak(std::string_view precision) const {
    return precision == "bf16" ? bf16 : precision == "fp64" ? fp64 : fp32;
  }
};

// The device of the recipe's word; "none" and unknown words have no limit and no peak. Sources: docs/memory.md,
// docs/flops.md.
const Device& DeviceOf(std::string_view gpu);

}  // namespace planwright
