// Copies from the host that a device makes while it still works on what was launched before.
#pragma once

#include <ATen/core/Tensor.h>

namespace planwright::executor {

// `tensor` on `device`, as ToDevice (executor/base/tensors.h) gives it, but on a GPU the copy has a stream of its own:
// it begins at once, and what the current stream gets from now on waits for it. The host launches ahead of the device,
// so a copy is done when the device comes to it. Only the current stream may read it: for others nothing keeps its
// memory from the next copy. That memory is not the current stream's: of a large tensor there may be two at a time, the
// one that is used and the next.
at::Tensor CopyAhead(const at::Tensor& tensor, at::Device device);

}  // namespace planwright::executor
