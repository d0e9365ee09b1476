// An event costs the host less than half a microsecond and the device next to nothing, but is lost with a device that
// breaks: what it had finished is then known up to the last look. A number that the stream writes to host memory
// (cuStreamWriteValue64) would be read without the driver, and outlive the device, but costs each instruction 3
// microseconds of the device; without its memory barrier it comes too early.
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "executor/telemetry/completion.h"
#include "planner/run_files/recorder_format.h"

namespace planwright::executor {
namespace {

// A launch that finds the device's queue full waits inside the driver, and whoever asks the driver then waits with it.
// So the host is kept from filling the queue, which holds about a thousand kernels: it stays this many instructions
// ahead at most.
constexpr uint64_t kMostAhead = 64, kAheadIsLookedAt = 16;

// The events of the last instructions.
class Marks {
 public:
  Marks() : device_(c10::cuda::current_device()) {
    for (cudaEvent_t& event : events_) C10_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  }
  // They go with the process: nothing here may wait for a device that hangs.

  void Add(uint64_t number) {
    const cudaStream_t stream = c10::cuda::getCurrentCUDAStream().stream();
    C10_CUDA_CHECK(cudaEventRecord(EventOf(number), stream));
    streams_[number % kRecorderEntries].store(stream, std::memory_order_relaxed);
    marked_.store(number, std::memory_order_release);
    if (number % kAheadIsLookedAt != 0 || number < kMostAhead) return;
    while (!HasCome(EventOf(number - kMostAhead))) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }

  // Work of one stream ends in order, so the first of it that has not come is found by halving; what is done of all is
  // before the first of those.
  uint64_t Count() {
    c10::cuda::set_device(device_);  // a thread that names none would wake up device 0
    const uint64_t marked = marked_.load(std::memory_order_acquire);
    // Older numbers have lost their events to newer ones.
    uint64_t first_open = marked + 1, first = std::max(finished_ + 1, marked - std::min(marked, kRecorderEntries - 1));
    std::map<cudaStream_t, std::vector<uint64_t>> numbers;
    for (uint64_t number = first; number <= marked; ++number) {
      numbers[streams_[number % kRecorderEntries].load(std::memory_order_relaxed)].push_back(number);
    }
    for (const auto& [stream, own] : numbers) {
      const auto open =
          std::partition_point(own.begin(), own.end(), [this](uint64_t number) { return HasCome(EventOf(number)); });
      if (open != own.end()) first_open = std::min(first_open, *open);
    }
    return finished_ = std::max(finished_, first_open - 1);
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
  std::array<std::atomic<cudaStream_t>, kRecorderEntries> streams_{};  // on which the event is
  std::atomic<uint64_t> marked_{0};
  uint64_t finished_ = 0;  // of the thread that counts
};

// A thread that asks the driver for others, who do not wait for long if it does not answer.
class Looks {
 public:
  uint64_t Get(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    const uint64_t mine = ++asked_;
    wake_.notify_all();
    answer_.wait_for(lock, patience, [&] { return answered_ >= mine; });
    return finished_;
  }

  // `count` until the end of the process, or until End.
  void Answer(const std::function<uint64_t()>& count) {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return ended_ || asked_ > answered_; });
      if (ended_) return;
      const uint64_t asked = asked_;
      lock.unlock();
      const uint64_t finished = count();
      lock.lock();
      finished_ = finished, answered_ = asked;
      answer_.notify_all();
    }
  }

  void End() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    wake_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_, answer_;
  uint64_t asked_ = 0, answered_ = 0, finished_ = 0;
  bool ended_ = false;
};

class CudaCompletion : public Completion {
 public:
  CudaCompletion() {
    std::thread([marks = marks_, looks = looks_] { looks->Answer([&] { return marks->Count(); }); }).detach();
  }
  ~CudaCompletion() override { looks_->End(); }

  void Mark(uint64_t number) override { marks_->Add(number); }
  uint64_t Finished() override { return looks_->Get(std::chrono::milliseconds(50)); }

 private:
  const std::shared_ptr<Marks> marks_ = std::make_shared<Marks>();
  const std::shared_ptr<Looks> looks_ = std::make_shared<Looks>();
};

}  // namespace

std::unique_ptr<Completion> MakeCudaCompletion() { return std::make_unique<CudaCompletion>(); }

}  // namespace planwright::executor
