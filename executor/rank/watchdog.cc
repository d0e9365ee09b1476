#include "executor/rank/watchdog.h"

#include <absl/strings/str_format.h>

#include <algorithm>

#include "executor/log/log.h"

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

}  // namespace planwright::executor
