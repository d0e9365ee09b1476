#include "executor/rank/watchdog.h"

#include <absl/strings/str_cat.h>

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
    if (!IsStuck(passed)) continue;
    return duties_.end(FailureKind::kTimeOut, ReadEntry(recorder_.page(), current_),
                       absl::StrCat("no progress for ", Seconds(duties_.limit), " seconds"));
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

bool Watchdog::IsStuck(std::chrono::nanoseconds passed) {
  const uint64_t done = recorder_.done();
  const uint64_t current = done < recorder_.begun() ? done + 1 : 0;
  const std::optional<RecordedInstruction> instruction = ReadEntry(recorder_.page(), current);
  const bool waits = instruction && instruction->state == RecorderState::kWaiting;
  // A communication waits for peers from its begin. Any other instruction can only be stuck on the device, so its time
  // starts when it is launched: until then the host works on it.
  const bool limited = current != 0 && (waits || current <= recorder_.launched());
  waited_ = current == current_ && limited == limited_ ? waited_ + passed : std::chrono::nanoseconds(0);
  current_ = current, limited_ = limited;
  if (limited_ && waited_ > duties_.limit / 2) half_over_ = current_;
  return limited_ && waited_ > duties_.limit;
}

void Watchdog::WarnAtHalf() {
  const uint64_t number = half_over_;
  if (number == warned_) return;
  warned_ = number;
  const std::optional<RecordedInstruction> at = ReadEntry(recorder_.page(), number);
  if (!at) return;  // it is long over
  LogWarning(absl::StrCat("waiting for ", Seconds(duties_.limit) / 2, " seconds in ", at->path, ": ", at->text,
                          "; the limit is ", Seconds(duties_.limit), " seconds"));
}

}  // namespace planwright::executor
