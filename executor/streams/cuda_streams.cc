#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>

#include "executor/streams/streams.h"

namespace planwright::executor {
namespace {

// One of CUDA's streams, with an event after each of its instructions for others to wait for.
class Marked {
 public:
  explicit Marked(c10::cuda::CUDAStream stream) : stream_(stream) {}
  // Events and streams go with the process: nothing here may wait for a device that hangs.

  const c10::cuda::CUDAStream& stream() const { return stream_; }

  void Mark(int64_t number) {
    Event& mark = marks_[static_cast<size_t>(count_++) % marks_.size()];
    if (mark.event == nullptr) C10_CUDA_CHECK(cudaEventCreateWithFlags(&mark.event, cudaEventDisableTiming));
    C10_CUDA_CHECK(cudaEventRecord(mark.event, stream_.stream()));
    mark.number = number;
  }

  // `other` goes on once instruction `number` of this stream, or one soon after it, is done.
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
  struct Event {
    int64_t number = -1;
    cudaEvent_t event = nullptr;
  };
  const c10::cuda::CUDAStream stream_;
  std::array<Event, 1024> marks_;  // older instructions stand behind the oldest that is left
  int64_t count_ = 0;
};

class CudaStreams : public Streams {
 public:
  CudaStreams(int streams, Recorder& recorder, BeforeEach before_each)
      : recorder_(recorder), before_each_(std::move(before_each)) {
    streams_.emplace_back(c10::cuda::getCurrentCUDAStream());
    for (int stream = 1; stream < streams; ++stream) streams_.emplace_back(c10::cuda::getStreamFromPool());
    C10_CUDA_CHECK(cudaEventCreateWithFlags(&started_, cudaEventDisableTiming));
  }

  bool here(int) const override { return true; }

  void Run(const StreamPlace& place, const std::function<void()>& work) override {
    Marked& own = streams_[static_cast<size_t>(place.stream)];
    const c10::cuda::CUDAStreamGuard guard(own.stream());
    const cudaStream_t stream = own.stream().stream();
    if (before_each_) before_each_();
    for (size_t other = 0; other < place.waits.size(); ++other) {
      if (place.waits[other] >= 0) streams_[other].LetWait(stream, place.waits[other]);
    }
    if (place.communicates) {
      // Each waits for the start of the one before, and so of all before that.
      if (communicated_) C10_CUDA_CHECK(cudaStreamWaitEvent(stream, started_));
      C10_CUDA_CHECK(cudaEventRecord(started_, stream));
      communicated_ = true;
    }
    work();
    own.Mark(number_++);
    recorder_.Launched();
  }

  void Join() override {
    for (const Marked& other : streams_) other.LetWait(streams_[0].stream().stream(), number_);
  }

 private:
  Recorder& recorder_;
  const BeforeEach before_each_;
  std::vector<Marked> streams_;
  cudaEvent_t started_ = nullptr;  // all work before the last communication is done
  bool communicated_ = false;
  int64_t number_ = 0;
};

}  // namespace

std::unique_ptr<Streams> MakeCudaStreams(int streams, Recorder& recorder, BeforeEach before_each) {
  return std::make_unique<CudaStreams>(streams, recorder, std::move(before_each));
}

}  // namespace planwright::executor
