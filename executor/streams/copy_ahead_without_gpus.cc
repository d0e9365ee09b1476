#include "executor/base/tensors.h"
#include "executor/streams/copy_ahead.h"

namespace planwright::executor {

at::Tensor CopyAhead(const at::Tensor& tensor, at::Device device) { return ToDevice(tensor, device); }

}  // namespace planwright::executor
