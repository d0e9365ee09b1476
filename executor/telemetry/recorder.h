// Writes the pages of recorder_format.h: what this rank was given to do and how much of it is done, readable after its
// death.
#pragma once

#include <absl/status/statusor.h>

#include <atomic>
#include <memory>
#include <string>

#include "executor/telemetry/completion.h"
#include "planner/run_files/recorder_format.h"

namespace planwright::executor {

// One thread begins instructions; the others may call what says so.
class Recorder {
 public:
  // Makes RUN/recorder/rankNNNN. ResourceExhausted if it cannot be written.
  static absl::StatusOr<std::unique_ptr<Recorder>> Open(const std::string& run_dir, int rank, const std::string& host);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // From now on an instruction is done when `device` says so, not when its launch has returned. Called once, before an
  // instruction that runs there.
  void Follow(std::unique_ptr<Completion> device) {
    owned_ = std::move(device);
    device_.store(owned_.get(), std::memory_order_release);
  }

  // An instruction begins, and all work of the one before is launched: the device is told to say when it has come that
  // far. A call begins before what it calls. `place` is the instruction's index in the list that `path` names. Does not
  // return in a rank that has failed: what its communicators are made to let go must not look like progress.
  void Begin(RecorderState state, int64_t step, int microbatch, int origin, const std::string& path, size_t place,
             const std::string& instruction);
  // All work of the instruction begun last is launched, on the current stream: said where the next one may begin on
  // another.
  void Launched();
  // The program has ended. Waits for the device.
  void Done();

  // From any thread. Refresh takes over what the device has finished since.
  void Refresh();
  // The last words of a rank, once. Nothing is written after them.
  void Fail(int exit_code, const char* message);
  uint64_t begun() const { return page_->begun.load(std::memory_order_acquire); }
  uint64_t launched() const { return launched_.load(std::memory_order_acquire); }
  uint64_t done() const { return page_->done.load(std::memory_order_acquire); }
  const RecorderPage& page() const { return *page_; }

 private:
  explicit Recorder(RecorderPage* page) : page_(page) {}

  RecorderPage* page_;
  std::unique_ptr<Completion> owned_;
  std::atomic<Completion*> device_{nullptr};
  std::atomic<uint64_t> launched_{0};
  std::atomic<bool> failed_{false};
};

}  // namespace planwright::executor
