#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <string>

#include "executor/communication/failure.h"
#include "executor/telemetry/completion.h"

namespace planwright::executor {
namespace {

using StreamWriteValue = CUresult (*)(CUstream, CUdeviceptr, cuuint64_t, unsigned int);

// libcuda comes with the driver and not with the toolkit, so it is asked for the function instead of being linked.
StreamWriteValue FindStreamWriteValue() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  C10_CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuStreamWriteValue64", &function, 12000, cudaEnableDefault, &found));
  if (found != cudaDriverEntryPointSuccess) throw CommunicationError(FailureKind::kDevice, "CUDA's driver has no cuStreamWriteValue64");
  return reinterpret_cast<StreamWriteValue>(function);
}

class CudaCompletion : public Completion {
 public:
  CudaCompletion() : write_(FindStreamWriteValue()) {
    void* memory = nullptr;
    C10_CUDA_CHECK(cudaHostAlloc(&memory, sizeof(uint64_t), cudaHostAllocMapped));
    finished_ = static_cast<volatile uint64_t*>(memory);
    *finished_ = 0;
    void* seen_by_device = nullptr;
    C10_CUDA_CHECK(cudaHostGetDevicePointer(&seen_by_device, memory, 0));
    target_ = reinterpret_cast<CUdeviceptr>(seen_by_device);
  }
  // The word stays: freeing it would wait for a device that may hang.

  void Mark(uint64_t number) override {
    const CUresult result = write_(c10::cuda::getCurrentCUDAStream().stream(), target_, number, CU_STREAM_WRITE_VALUE_DEFAULT);
    if (result == CUDA_SUCCESS) return;
    throw CommunicationError(FailureKind::kDevice, "CUDA: the device takes no more work, error " + std::to_string(result));
  }

  uint64_t Finished() const override { return *finished_; }

 private:
  StreamWriteValue write_;
  volatile uint64_t* finished_ = nullptr;  // written by the device
  CUdeviceptr target_ = 0;
};

}  // namespace

std::unique_ptr<Completion> MakeCudaCompletion() { return std::make_unique<CudaCompletion>(); }

}  // namespace planwright::executor
