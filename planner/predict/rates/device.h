// Memory and speed of the devices that `cluster.gpu` can name. Sources: docs/memory.md#devices,
// docs/flops.md#data-sheets.
#pragma once

#include <cstdint>
#include <string_view>

#include "planner/plan/plan.h"

namespace planwright {

struct Device {
  std::string_view gpu;                 // the recipe's word: "h100_sxm"
  int64_t memory = 0;                   // bytes, as CUDA reports the device's total; 0: no limit is known (CPU ranks)
  double bf16 = 0, fp32 = 0, fp64 = 0;  // dense peak of matrix products in FLOP/s, fp32 without TF32; 0: unknown

  // Bytes/s: of its memory; of its links to GPUs of its node, and of its share of the node's network, in one direction.
  // 0: unknown.
  double memory_speed = 0, node_link = 0, network = 0;
  double host_link = 0;  // bytes/s from it to the memory of its host; 0: unknown
  bool cudnn = false;  // causal attention is cuDNN's where that takes it: Hopper (executor/ops/fast/cudnn_attention.h)

  double peak(std::string_view precision) const {
    return precision == "bf16" ? bf16 : precision == "fp64" ? fp64 : fp32;
  }
};

// The device of the recipe's word. "none" and unknown words give a device without limit and peak.
const Device& DeviceOf(std::string_view gpu);

// The same with the figures that the recipe gives. Its peak is that of the recipe's precision: it stands for all.
Device DeviceOf(const Cluster& cluster);

}  // namespace planwright
