#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "executor/base/tensors.h"
#include "executor/streams/copy_ahead.h"

namespace planwright::executor {

at::Tensor CopyAhead(const at::Tensor& tensor, at::Device device) {
  if (!device.is_cuda() || !tensor.is_cpu() || tensor.numel() == 0) return ToDevice(tensor, device);
  static const c10::cuda::CUDAStream copies = c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index());
  const c10::cuda::CUDAStream current = c10::cuda::getCurrentCUDAStream(device.index());
  at::Tensor copy;
  at::cuda::CUDAEvent done;
  {
    // Memory of the copies' own: that of the current stream may still be read by work that was launched before.
    const c10::cuda::CUDAStreamGuard guard(copies);
    copy = ToDevice(tensor, device);
    done.record(copies);
  }
  done.block(current);
  copy.record_stream(current);  // its memory is not given out again before that stream has done with it
  return copy;
}

}  // namespace planwright::executor
