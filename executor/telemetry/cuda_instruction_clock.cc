// Times on a GPU, by two timing events for each instruction. Only differences of events can be read, as floats. So each
// event is read as the distance from the one before it on its stream, which is short and therefore exact. One event at
// the end, whose time on the host's clock is known to some microseconds, ties the device's times to the host's.
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <cmath>
#include <unordered_map>

#include "executor/telemetry/instruction_clock.h"

namespace planwright::executor {
namespace {

double NanosecondsBetween(cudaEvent_t from, cudaEvent_t to) {
  float milliseconds = 0;
  C10_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, from, to));
  return static_cast<double>(milliseconds) * 1e6;
}

class CudaInstructionClock : public InstructionClock {
 public:
  explicit CudaInstructionClock(size_t instructions) : instructions_(instructions) {
    for (InstructionEvents& events : instructions_) {
      C10_CUDA_CHECK(cudaEventCreate(&events.begin));
      C10_CUDA_CHECK(cudaEventCreate(&events.end));
    }
    C10_CUDA_CHECK(cudaEventCreate(&reference_));
  }
  // No destructor: destroying events could wait for a device that hangs. Read destroys them, on an idle device.

  void Begin(size_t number) override {
    InstructionEvents& events = instructions_[number];
    events.stream = c10::cuda::getCurrentCUDAStream().stream();
    C10_CUDA_CHECK(cudaEventRecord(events.begin, events.stream));
  }
  void End(size_t number) override {
    InstructionEvents& events = instructions_[number];
    C10_CUDA_CHECK(cudaEventRecord(events.end, events.stream));
  }

  std::vector<InstructionSpan> Read() override {
    const cudaStream_t stream = c10::cuda::getCurrentCUDAStream().stream();
    C10_CUDA_CHECK(cudaStreamSynchronize(stream));
    // The device is idle, so the event happens between the two looks at the clock.
    const int64_t before = MonotonicNow();
    C10_CUDA_CHECK(cudaEventRecord(reference_, stream));
    C10_CUDA_CHECK(cudaEventSynchronize(reference_));
    const int64_t at = before + (MonotonicNow() - before) / 2;

    std::vector<InstructionSpan> spans;
    spans.reserve(instructions_.size());
    std::unordered_map<cudaStream_t, Last> last_of;
    for (const InstructionEvents& events : instructions_) {
      const auto [it, first] = last_of.try_emplace(events.stream);
      Last& last = it->second;
      const double begin = first ? -NanosecondsBetween(events.begin, reference_)
                                 : last.after_reference + NanosecondsBetween(last.end, events.begin);
      last = {events.end, begin + NanosecondsBetween(events.begin, events.end)};
      spans.push_back({at + std::llround(begin), at + std::llround(last.after_reference)});
    }
    for (const InstructionEvents& events : instructions_) {
      C10_CUDA_CHECK(cudaEventDestroy(events.begin));
      C10_CUDA_CHECK(cudaEventDestroy(events.end));
    }
    C10_CUDA_CHECK(cudaEventDestroy(reference_));
    instructions_.clear();
    return spans;
  }

 private:
  struct InstructionEvents {
    cudaEvent_t begin = nullptr, end = nullptr;
    cudaStream_t stream = nullptr;
  };
  // The last event of a stream that was read, and its time in nanoseconds after the reference: negative.
  struct Last {
    cudaEvent_t end = nullptr;
    double after_reference = 0;
  };

  std::vector<InstructionEvents> instructions_;
  cudaEvent_t reference_ = nullptr;
};

}  // namespace

std::unique_ptr<InstructionClock> MakeCudaInstructionClock(size_t instructions) {
  return std::make_unique<CudaInstructionClock>(instructions);
}

}  // namespace planwright::executor
