// Streams on a GPU. The host launches all instructions itself, in program order; CUDA events make the streams wait for
// each other on the device.
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>

#include "executor/streams/streams.h"

namespace planwright::executor {
namespace {

// A CUDA stream with an event after each of its instructions, for which other streams can wait.
class StreamWithEvents {
 public:
  explicit StreamWithEvents(c10::cuda::CUDAStream stream) : stream_(stream) {}
  // No destructor: destroying events would wait for a device that hangs. They end with the process.

  const c10::cuda::CUDAStream& stream() const { return stream_; }

  // Instruction `number` is launched on this stream.
  void Mark(int64_t number) {
    InstructionEvent& mark = marks_[static_cast<size_t>(count_++) % marks_.size()];
    if (mark.event == nullptr) C10_CUDA_CHECK(cudaEventCreateWithFlags(&mark.event, cudaEventDisableTiming));
    C10_CUDA_CHECK(cudaEventRecord(mark.event, stream_.stream()));
    mark.number = number;
  }

  // `other` goes on once instruction `number` of this stream is done. A number behind the last instruction (as Join
  // gives) means the last one. The marks ascend, so the search is a bisection.
  void LetWait(cudaStream_t other, int64_t number) const {
    int64_t first = std::max<int64_t>(0, count_ - static_cast<int64_t>(marks_.size())), end = count_ - 1;
    if (end < 0) return;
    while (first < end) {
      const int64_t middle = first + (end - first) / 2;
      marks_[static_cast<size_t>(middle) % marks_.size()].number < number ? void(first = middle + 1)
                                                                          : void(end = middle);
    }
    C10_CUDA_CHECK(cudaStreamWaitEvent(other, marks_[static_cast<size_t>(first) % marks_.size()].event));
  }

 private:
  struct InstructionEvent {
    int64_t number = -1;
    cudaEvent_t event = nullptr;
  };
  const c10::cuda::CUDAStream stream_;
  // A ring: who waits for an older instruction waits for the oldest that is left, which comes after it.
  std::array<InstructionEvent, 1024> marks_;
  int64_t count_ = 0;
};

class CudaStreams : public Streams {
 public:
  CudaStreams(int streams, Recorder& recorder, BeforeInstruction before_instruction)
      : recorder_(recorder), before_instruction_(std::move(before_instruction)) {
    streams_.emplace_back(c10::cuda::getCurrentCUDAStream());
    // Before the main stream: what is beside it is communication. It has few blocks, and others wait for it, the host
    // too (row counts). At equal priority a product that was launched first would keep them off the device.
    for (int stream = 1; stream < streams; ++stream)
      streams_.emplace_back(c10::cuda::getStreamFromPool(/*isHighPriority=*/true));
    C10_CUDA_CHECK(cudaEventCreateWithFlags(&started_, cudaEventDisableTiming));
  }

  bool runs_on_caller(int) const override { return true; }

  void Run(const StreamLaunch& launch, const std::function<void()>& work) override {
    StreamWithEvents& own = streams_[static_cast<size_t>(launch.stream)];
    const c10::cuda::CUDAStreamGuard guard(own.stream());
    const cudaStream_t stream = own.stream().stream();
    if (before_instruction_) before_instruction_();
    for (size_t other = 0; other < launch.waits.size(); ++other) {
      if (launch.waits[other] >= 0) streams_[other].LetWait(stream, launch.waits[other]);
    }
    if (launch.communicates) {
      // NCCL kernels of several communicators can block each other on the device, so they start in one order on all
      // ranks. Each waits for the start of the one before it, and so for all earlier ones.
      if (communicated_) C10_CUDA_CHECK(cudaStreamWaitEvent(stream, started_));
      C10_CUDA_CHECK(cudaEventRecord(started_, stream));
      communicated_ = true;
    }
    work();
    own.Mark(number_++);
    recorder_.Launched();
  }

  void Join() override {
    for (const StreamWithEvents& other : streams_) other.LetWait(streams_[0].stream().stream(), number_);
  }

 private:
  Recorder& recorder_;
  const BeforeInstruction before_instruction_;
  std::vector<StreamWithEvents> streams_;
  cudaEvent_t started_ = nullptr;  // recorded just before the last communication: done means that it may start
  bool communicated_ = false;      // whether started_ has been recorded
  int64_t number_ = 0;             // of the next instruction
};

}  // namespace

std::unique_ptr<Streams> MakeCudaStreams(int streams, Recorder& recorder, BeforeInstruction before_instruction) {
  return std::make_unique<CudaStreams>(streams, recorder, std::move(before_instruction));
}

}  // namespace planwright::executor
