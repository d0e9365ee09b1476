// How far a GPU is, by one event after each instruction. An event costs the host less than half a microsecond and the
// device almost nothing. Its weakness: if the device breaks, its events are lost, and only what was asked before is
// known. The alternative is a number that the stream writes to host memory (cuStreamWriteValue64). It could be read
// without the driver and would survive the device, but it costs 3 microseconds of the device for each instruction;
// without its memory barrier the number arrives before the work is done.
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

#include "executor/telemetry/recorder.h"
#include "planner/wire/records/recorder_format.h"

namespace planwright::executor {
namespace {

// A launch into a full queue waits inside the driver, and then every other call into the driver waits as well, those of
// the watchdog included. So the host is kept from filling the queue, which holds about a thousand kernels: it is at
// most kMostAhead instructions ahead, checked at every kCheckEvery-th instruction.
constexpr uint64_t kMostAhead = 64, kCheckEvery = 16;

// The events of the last kRecorderEntries instructions. One thread adds; one other thread counts.
class InstructionEvents {
 public:
  InstructionEvents() : device_(c10::cuda::current_device()) {
    for (cudaEvent_t& event : events_) C10_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  }
  // No destructor: destroying events would wait for a device that hangs. They end with the process.

  // Returns how long it waited for the device.
  std::chrono::nanoseconds Add(uint64_t number) {
    const cudaStream_t stream = c10::cuda::getCurrentCUDAStream().stream();
    C10_CUDA_CHECK(cudaEventRecord(EventOf(number), stream));
    streams_[number % kRecorderEntries].store(stream, std::memory_order_relaxed);
    marked_.store(number, std::memory_order_release);
    if (number % kCheckEvery != 0 || number < kMostAhead || IsDone(EventOf(number - kMostAhead))) return {};
    const auto begun = std::chrono::steady_clock::now();
    while (!IsDone(EventOf(number - kMostAhead))) std::this_thread::sleep_for(std::chrono::microseconds(20));
    return std::chrono::steady_clock::now() - begun;
  }

  // The last instruction that is done together with all before it. Work of one stream ends in order, so the first open
  // instruction of each stream is found by bisection. Everything before the earliest of these is done.
  uint64_t CountDone() {
    c10::cuda::set_device(device_);  // a thread without a device would initialise device 0
    const uint64_t marked = marked_.load(std::memory_order_acquire);
    // The events of older instructions have been reused by newer ones. The walker is never so far ahead (kMostAhead)
    // that an open one could be among them.
    uint64_t first_open = marked + 1, first = std::max(finished_ + 1, marked - std::min(marked, kRecorderEntries - 1));
    std::map<cudaStream_t, std::vector<uint64_t>> numbers;
    for (uint64_t number = first; number <= marked; ++number) {
      numbers[streams_[number % kRecorderEntries].load(std::memory_order_relaxed)].push_back(number);
    }
    for (const auto& [stream, own] : numbers) {
      const auto open =
          std::partition_point(own.begin(), own.end(), [this](uint64_t number) { return IsDone(EventOf(number)); });
      if (open != own.end()) first_open = std::min(first_open, *open);
    }
    return finished_ = std::max(finished_, first_open - 1);
  }

 private:
  static bool IsDone(cudaEvent_t event) {
    if (cudaEventQuery(event) == cudaSuccess) return true;
    // "Not ready" is recorded as an error. Clear it, or LibTorch would report it.
    static_cast<void>(cudaGetLastError());
    return false;
  }
  cudaEvent_t EventOf(uint64_t number) { return events_[number % kRecorderEntries]; }

  const c10::DeviceIndex device_;
  std::array<cudaEvent_t, kRecorderEntries> events_{};
  std::array<std::atomic<cudaStream_t>, kRecorderEntries> streams_{};  // on which each event was recorded
  std::atomic<uint64_t> marked_{0};
  uint64_t finished_ = 0;  // used by the counting thread alone
};

// Hands questions to a thread that may block in the driver. Who asks waits for the answer for a limited time only.
class AnswerBoard {
 public:
  // The newest answer; after `patience` the last one that there was.
  uint64_t Ask(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    const uint64_t mine = ++asked_;
    wake_.notify_all();
    answer_.wait_for(lock, patience, [&] { return answered_ >= mine; });
    return finished_;
  }

  // Answers each question with `count`, until End is called. Runs on the answering thread.
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
    // Detached, and holding what it uses: if the driver blocks it for ever, nobody waits for it.
    std::thread([events = events_, board = board_] { board->Answer([&] { return events->CountDone(); }); }).detach();
  }
  ~CudaCompletion() override { board_->End(); }

  std::chrono::nanoseconds Mark(uint64_t number) override { return events_->Add(number); }
  uint64_t Finished() override { return board_->Ask(std::chrono::milliseconds(50)); }

 private:
  const std::shared_ptr<InstructionEvents> events_ = std::make_shared<InstructionEvents>();
  const std::shared_ptr<AnswerBoard> board_ = std::make_shared<AnswerBoard>();
};

}  // namespace

std::unique_ptr<Completion> MakeCudaCompletion() { return std::make_unique<CudaCompletion>(); }

}  // namespace planwright::executor
