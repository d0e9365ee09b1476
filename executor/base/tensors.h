// Small conversions between the plan's words and LibTorch's, for every room of the executor: the dtype of a value, and
// the way from host memory to the device.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/pin_memory.h>
#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

#include "planner/plan/instruction.h"

namespace planwright::executor {

// LibTorch's name of a plan's dtype.
inline at::ScalarType ScalarTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kInt64: return at::kLong;
    case DType::kFp32: return at::kFloat;
    case DType::kFp64: return at::kDouble;
    case DType::kBf16: return at::kBFloat16;
  }
  TORCH_CHECK(false, "unknown dtype");
}

// `tensor` on `device`. The host does not wait: a tensor in host memory is copied to pinned memory first, and the copy
// to the GPU is queued on the current stream. LibTorch keeps the pinned block until that copy is done. A tensor that is
// on the device already, or stays on the host, is returned as it is.
inline at::Tensor ToDevice(const at::Tensor& tensor, at::Device device) {
  if (!device.is_cuda() || !tensor.is_cpu() || tensor.numel() == 0) return tensor.to(device);
  return tensor.pin_memory().to(device, tensor.scalar_type(), /*non_blocking=*/true);
}

}  // namespace planwright::executor
