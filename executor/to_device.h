// What the host has made goes to the device without a wait.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/pin_memory.h>

namespace planwright::executor {

// `made` on `device`. To a GPU it is copied from pinned memory behind what is launched, so the host goes on at once;
// the pinned block is LibTorch's to keep until the copy is done. What is on the device already, or stays on the host,
// is handed on as it is.
inline at::Tensor ToDevice(const at::Tensor& made, at::Device device) {
  if (!device.is_cuda() || !made.is_cpu() || made.numel() == 0) return made.to(device);
  return made.pin_memory().to(device, made.scalar_type(), /*non_blocking=*/true);
}

}  // namespace planwright::executor
