// The way of a step's small values to the host, which waits for them (row counts).
#pragma once

#include <ATen/core/Tensor.h>

namespace planwright::executor {

// `tensor` in host memory. The host waits for a device tensor, but not for copies that are queued on other streams
// (docs/checkpoints.md#writing-beside-training). For few bytes: it does not use the copy engine.
at::Tensor ToHost(const at::Tensor& tensor);

}  // namespace planwright::executor
