// Writes the pages of planner/wire/records/recorder_format.h: which instructions this rank has begun and how many of
// them are done. The launcher reads them after the death of the rank.
#pragma once

#include <absl/status/statusor.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "planner/wire/records/recorder_format.h"

namespace planwright::executor {

// How far a device is with the work that it was given. A launch returns long before its work is done, so the last
// launched instruction does not say where a rank hangs.
class Completion {
 public:
  virtual ~Completion() = default;
  // All work of instruction `number` is launched. Numbers ascend by one. Waits only for a device that is far behind,
  // and returns how long.
  virtual std::chrono::nanoseconds Mark(uint64_t number) = 0;
  // The last marked instruction that is done together with all instructions before it. May be called from any thread.
  // If the device hangs, it still returns soon, with what was known before.
  virtual uint64_t Finished() = 0;
};

// For the current CUDA device: an event after each instruction, on the stream that is current when it is marked. The
// host is kept from running more than a few dozen instructions ahead. Only in builds with CUDA.
std::unique_ptr<Completion> MakeCudaCompletion();

// One thread calls Begin, Launched and Done. Other threads may call the functions that say so.
class Recorder {
 public:
  // Creates RUN/recorder/rankNNNN. ResourceExhausted if it cannot be written.
  static absl::StatusOr<std::unique_ptr<Recorder>> Open(const std::string& run_dir, int rank, const std::string& host);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // From now on an instruction counts as done when `device` says so, not when its launch has returned. Called once,
  // before the first instruction that runs on that device.
  void Follow(std::unique_ptr<Completion> device) {
    owned_ = std::move(device);
    device_.store(owned_.get(), std::memory_order_release);
  }

  // An instruction begins, and all work of the one before it is launched. `path` and `index`: the list or block that
  // contains the instruction, and its index there. `step` is counted from 1 (0: before the first), `microbatch` and
  // `origin` are -1 if there is none. `deadline`: how long it may be the first unfinished one
  // (docs/failures.md#deadlines). Does not return in a rank that has failed: aborting its communicators releases the
  // walker, and that must not look like progress.
  void Begin(RecorderState state, int64_t step, int microbatch, int origin, const std::string& path, size_t index,
             const std::string& instruction, std::chrono::nanoseconds deadline = std::chrono::nanoseconds::max());
  // All work of the last instruction begun is launched, on the current stream. Begin would say so as well, but the next
  // instruction may begin on another stream, and a profile ends the launch here.
  void Launched();
  // How long the thread that calls Begin and Launched has waited in them for a device that was far behind, in all.
  std::chrono::nanoseconds waited() const { return waited_; }
  // The program has ended. Waits until the device has done everything.
  void Done();

  // All below may be called from any thread. Refresh asks the device how far it is, and records it.
  void Refresh();
  // Records how long the rank computed in a step. Called by one thread.
  void Pace(int64_t step, std::chrono::nanoseconds busy);
  // Records why the rank ends. Called once; nothing is recorded after it.
  void Fail(int exit_code, const char* message);
  // Numbers of the last instruction that has begun, is launched, is done; 0: none.
  uint64_t begun() const { return page_->begun.load(std::memory_order_acquire); }
  uint64_t launched() const { return launched_.load(std::memory_order_acquire); }
  uint64_t done() const { return page_->done.load(std::memory_order_acquire); }
  // Whether Done has returned, or is about to.
  bool is_done() const {
    return page_->state.load(std::memory_order_acquire) == static_cast<int32_t>(RecorderState::kDone);
  }
  const RecorderPage& page() const { return *page_; }

 private:
  explicit Recorder(RecorderPage* page) : page_(page) {}

  RecorderPage* page_;
  std::unique_ptr<Completion> owned_;
  std::atomic<Completion*> device_{nullptr};
  std::atomic<uint64_t> launched_{0};
  std::chrono::nanoseconds waited_{0};
  std::atomic<bool> failed_{false};
};

}  // namespace planwright::executor
