#include "executor/program/to_host.h"

#include <ATen/ops/empty.h>
#ifdef PLANWRIGHT_CUDA
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "executor/kernels/write_to_host.h"
#endif

namespace planwright::executor {

at::Tensor ToHost(const at::Tensor& tensor) {
#ifdef PLANWRIGHT_CUDA
  if (tensor.is_cuda()) {
    const at::Tensor from = tensor.contiguous(),
                     host = at::empty(tensor.sizes(), tensor.options().device(at::kCPU).pinned_memory(true));
    if (tensor.numel() == 0) return host;
    const c10::cuda::CUDAGuard guard(tensor.device());
    const c10::cuda::CUDAStream stream = c10::cuda::getCurrentCUDAStream();
    void* mapped = nullptr;
    C10_CUDA_CHECK(cudaHostGetDevicePointer(&mapped, host.mutable_data_ptr(), 0));
    LaunchWriteToHost(from.const_data_ptr(), mapped, static_cast<int64_t>(from.nbytes()), stream.stream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    stream.synchronize();
    return host;
  }
#endif
  return tensor.cpu();
}

}  // namespace planwright::executor
