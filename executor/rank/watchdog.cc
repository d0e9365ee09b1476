#include "executor/rank/watchdog.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <optional>
#include <string>

#include "executor/communication/communicators.h"
#include "executor/log/log.h"
#include "executor/program/instruction_text.h"
#include "executor/rank/exit.h"

namespace planwright::executor {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// How often the recorder learns what the device has done. A GPU that breaks loses its events, and then only what was
// learned before is known (docs/gpu.md).
constexpr auto kWatchPeriod = 20ms;
// How often the backends are asked for failures that nobody was waiting for.
constexpr auto kAskPeriod = 200ms;
// How often the kernel is asked for the bytes that files have moved, and what is no progress: other threads write lines
// of logs, and the answer itself is read.
constexpr auto kLookPeriod = 1s;
constexpr int64_t kFewBytes = 1 << 20;

// All ranks may read samples from one disk: if that hangs, no rank waits for another one.
bool MovesBytes(RecorderState state) { return state == RecorderState::kStoring || state == RecorderState::kReading; }

double Seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

// Bytes that this process has read and written so far, through calls and through mapped files, as the kernel counts
// them (/proc/self/io); nullopt: it does not. Sockets do not count. A disk has no estimate, so saving and loading have
// no fixed time: they hang if nothing moves any more.
std::optional<int64_t> BytesMoved() {
  std::ifstream file("/proc/self/io");
  std::string name;
  int64_t number = 0, sum = 0;
  bool any = false;
  // rchar, wchar: by calls. read_bytes: from a disk, so also of mapped files. write_bytes: to a disk, later.
  while (file >> name >> number) {
    if (name != "rchar:" && name != "wchar:" && name != "read_bytes:" && name != "write_bytes:") continue;
    sum += number;
    any = true;
  }
  return any ? std::optional(sum) : std::nullopt;
}

}  // namespace

Watchdog::Watchdog(Recorder& recorder, Duties duties)
    : recorder_(recorder), duties_(std::move(duties)), watcher_([this] { WatchProgress(); }),
      asker_([this] { AskBackends(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  wake_.notify_all();
  watcher_.join();
  asker_.join();
}

bool Watchdog::Sleep(std::chrono::milliseconds period) {
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, period, [this] { return stopped_; });
}

void Watchdog::WatchProgress() {
  auto last = Clock::now();
  while (Sleep(kWatchPeriod)) {
    recorder_.Refresh();
    // The clock runs on while this process is stopped (SIGSTOP) or its machine sleeps. That is no waiting for a peer,
    // so one round never counts as more than ten periods.
    const auto now = Clock::now();
    const auto passed = std::min<std::chrono::nanoseconds>(now - last, 10 * kWatchPeriod);
    last = now;
    const uint64_t done = recorder_.done();
    const auto at = done < recorder_.begun() ? ReadEntry(recorder_.page(), done + 1) : std::nullopt;
    NotePace(at, passed);
    if (!IsStuck(at, passed)) continue;
    return duties_.end(
        FailureKind::kTimeOut, at,
        absl::StrFormat("%s for %.3g seconds, its deadline", MovesBytes(at->state) ? "no byte moved" : "no progress",
                        Seconds(std::chrono::nanoseconds(at->deadline))));
  }
}

void Watchdog::AskBackends() {
  while (Sleep(kAskPeriod)) {
    WarnAtHalf();
    if (recorder_.is_done()) continue;  // peers may leave from now on, and backends take that for a failure
    const std::optional<CommunicationError> failure = duties_.find_failure();
    if (failure)
      return duties_.end(failure->kind(), ReadEntry(recorder_.page(), recorder_.done() + 1), failure->what());
  }
}

bool Watchdog::IsStuck(const std::optional<RecordedInstruction>& at, std::chrono::nanoseconds passed) {
  const uint64_t current = at ? at->number : 0;
  const bool moves = at && MovesBytes(at->state), waits = at && at->state == RecorderState::kWaiting;
  // A communication waits for peers from its begin. Any other instruction can only be stuck on the device, so its time
  // starts when it is launched: until then the host works on it.
  const bool limited = current != 0 && (waits || moves || current <= recorder_.launched());
  waited_ = current == current_ && limited == limited_ ? waited_ + passed : std::chrono::nanoseconds(0);
  current_ = current, limited_ = limited;
  if (moves && BytesMove()) waited_ = {};
  if (moves && at->state == RecorderState::kStoring && waits_for_others_) waited_ = {};
  if (limited_ && waited_.count() > at->deadline / 2) half_over_ = current_;
  return limited_ && waited_ > duties_.patience && (waited_ - duties_.patience).count() > at->deadline;
}

bool Watchdog::BytesMove() {
  const auto now = Clock::now();
  if (now - looked_ < kLookPeriod) return false;
  looked_ = now;
  const std::optional<int64_t> moved = duties_.bytes_moved();
  if (!moved) return true;
  if (*moved - moved_ < kFewBytes) return false;
  moved_ = *moved;
  return true;
}

void Watchdog::NotePace(const std::optional<RecordedInstruction>& at, std::chrono::nanoseconds passed) {
  if (!at) return;
  if (at->step > pace_step_) {
    // Steps shorter than a period may never be seen: their time counts for the one before. The first step is unlike the
    // others, and the one in which the watchdog began is not whole.
    for (int64_t step = pace_step_; pace_step_ > first_pace_ && step < at->step; ++step) {
      recorder_.Pace(step, busy_);
      busy_ = {};
    }
    if (pace_step_ == 0) first_pace_ = at->step;
    pace_step_ = at->step;
    busy_ = {};
  }
  if (at->state == RecorderState::kRunning || at->state == RecorderState::kReading) busy_ += passed;
}

void Watchdog::WarnAtHalf() {
  const uint64_t number = half_over_;
  if (number == warned_) return;
  warned_ = number;
  const std::optional<RecordedInstruction> at = ReadEntry(recorder_.page(), number);
  if (!at) return;  // it is long over
  const double deadline = Seconds(std::chrono::nanoseconds(at->deadline));
  LogWarning(absl::StrCat("waiting for ", deadline / 2, " seconds in ", at->path, ": ", at->text, "; its deadline is ",
                          deadline, " seconds"));
}

Watchdog::Duties WatchdogDuties(const Assignment& assignment, at::Device device) {
  const auto end = [&assignment](FailureKind kind, const std::optional<RecordedInstruction>& at,
                                 const std::string& what) {
    const std::string instruction = at ? absl::StrCat(at->path, ": ", at->text, ": ") : "";
    const std::string origin = at ? OriginText(assignment.plan, at->origin) : "";
    Exit(ExitStatusOf(kind),
         absl::StrCat(assignment.self(), instruction, what, origin.empty() ? "" : "\n  recipe: ", origin));
  };
  // Gloo has time-outs of its own, and its errors say more. On CPUs the watchdog waits a little longer, so that Gloo
  // reports first.
  return {.patience = device.is_cpu() ? std::chrono::seconds(2) : std::chrono::seconds(0),
          .bytes_moved = BytesMoved,
          .find_failure = [device] { return FindFailure(device); },
          .end = end};
}

}  // namespace planwright::executor
