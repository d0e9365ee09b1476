// An event costs the host less than half a microsecond and the device next to nothing, but is lost with a device that breaks: what it had
// finished is then known up to the last look. A number that the stream writes to host memory (cuStreamWriteValue64) would be read without
// the driver, and outlive the device, but costs each instruction 3 microseconds of the device; without its memory barrier it comes too early.
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "executor/telemetry/completion.h"
#include "planner/plan/recorder_format.h"

namespace planwright::executor {
namespace {

class CudaCompletion : public Completion {
 public:
  CudaCompletion() : device_(c10::cuda::current_device()) {
    for (cudaEvent_t& event : events_) C10_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  }
  // The events stay: they go with the process, and nothing here may wait for a device that hangs.

  void Mark(uint64_t number) override {
    C10_CUDA_CHECK(cudaEventRecord(EventOf(number), c10::cuda::getCurrentCUDAStream().stream()));
    marked_.store(number, std::memory_order_release);
  }

  // Work of one stream ends in order, so the last event that has come is found by halving.
  uint64_t Finished() override {
    c10::cuda::set_device(device_);  // a thread that names none would wake up device 0
    const uint64_t marked = marked_.load(std::memory_order_acquire);
    uint64_t finished = finished_.load();
    // Each of [first, end) may be the first that is not done. Older numbers have lost their events to newer ones.
    uint64_t first = std::max(finished, marked - std::min(marked, kRecorderEntries - 1)), end = marked + 1;
    while (first < end) {
      const uint64_t middle = first + (end - first) / 2;
      if (HasCome(EventOf(middle))) {
        finished = std::max(finished, middle);
        first = middle + 1;
      } else {
        end = middle;
      }
    }
    finished_.store(finished);
    return finished;
  }

 private:
  static bool HasCome(cudaEvent_t event) {
    if (cudaEventQuery(event) == cudaSuccess) return true;
    static_cast<void>(cudaGetLastError());  // not yet is no error to be found by others
    return false;
  }
  cudaEvent_t EventOf(uint64_t number) { return events_[number % kRecorderEntries]; }

  const c10::DeviceIndex device_;
  std::array<cudaEvent_t, kRecorderEntries> events_{};
  std::atomic<uint64_t> marked_{0}, finished_{0};
};

}  // namespace

std::unique_ptr<Completion> MakeCudaCompletion() { return std::make_unique<CudaCompletion>(); }

}  // namespace planwright::executor
