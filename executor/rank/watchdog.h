// Two threads beside the walker that end a rank which makes no progress. The walker cannot do it: it may be blocked
// inside Gloo, NCCL or CUDA. One thread watches the recorder: it counts the time at an instruction, and the time that
// the rank computes in each step. It calls no backend. The other asks the backends whether they have failed, and writes
// warnings to the log: that may block as well, and then only this thread is lost.
#pragma once

#include <c10/core/Device.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "executor/communication/failure.h"
#include "executor/rank/assignment.h"
#include "executor/telemetry/recorder.h"

namespace planwright::executor {

class Watchdog {
 public:
  struct Duties {
    // How much longer than its deadline (RecorderEntry::deadline) the same instruction may be the first unfinished one.
    // For a communication the time counts from when it began; for one that saves, loads or reads samples, from when
    // bytes moved last; for any other, from when it was launched on a device. Other work on the host has no deadline,
    // as drawing weights may take long. If it never ends, the deadlines of its peers end the run.
    std::chrono::nanoseconds patience{0};
    // Bytes of files that have moved so far; nullopt: unknown, and what moves them has no deadline.
    std::function<std::optional<int64_t>()> bytes_moved;
    // Asks the backends for a failure that they noticed by themselves.
    std::function<std::optional<CommunicationError>()> find_failure;
    // Ends the rank. Called from either thread with the first unfinished instruction (if there is one) and the reason.
    std::function<void(FailureKind, const std::optional<RecordedInstruction>&, const std::string&)> end;
  };

  Watchdog(Recorder& recorder, Duties duties);
  ~Watchdog();  // stops watching

  // Called from any thread. While what this rank saves waits for what others save, saving has no deadline here: theirs
  // end the run.
  void WaitForOthers(bool waits) { waits_for_others_ = waits; }

 private:
  void WatchProgress();
  void AskBackends();
  bool Sleep(std::chrono::milliseconds period);  // false: the watchdog is being destroyed
  // Adds `passed` to the time that the rank has spent at its current instruction. True if that is over the deadline.
  bool IsStuck(const std::optional<RecordedInstruction>& at, std::chrono::nanoseconds passed);
  bool BytesMove();
  // Adds `passed` to the time that the rank has computed in the current step, if it does.
  void NotePace(const std::optional<RecordedInstruction>& at, std::chrono::nanoseconds passed);
  // Logs the instruction in half_over_, once. Called by the thread that asks the backends: a disk that hangs may block
  // it.
  void WarnAtHalf();

  Recorder& recorder_;
  const Duties duties_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopped_ = false;

  uint64_t current_ = 0;  // the first instruction that is not done; 0: none
  bool limited_ = false;  // whether its deadline holds
  std::chrono::nanoseconds waited_{};
  int64_t moved_ = 0;  // bytes of files when they moved last
  std::chrono::steady_clock::time_point looked_;
  int64_t pace_step_ = 0, first_pace_ = 0;  // the step whose time is counted, and the first one; 0: none yet
  std::chrono::nanoseconds busy_{};
  std::atomic<bool> waits_for_others_ = false;
  std::atomic<uint64_t> half_over_ = 0;  // the last instruction that has taken half of its deadline; 0: none
  uint64_t warned_ = 0;                  // the last one that the log has a warning of
  std::thread watcher_, asker_;          // the last members: they use the others
};

// What the watchdog of a rank looks at, and how it ends the rank. Keeps a reference. A hang, or a failure that a
// backend noticed, is reported in the same form as the walker's own errors.
Watchdog::Duties WatchdogDuties(const Assignment& assignment, at::Device device);

}  // namespace planwright::executor
