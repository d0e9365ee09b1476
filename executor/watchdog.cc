#include "executor/watchdog.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

namespace planwright::executor {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// How often the recorder learns what the device has done, and how often backends are asked.
constexpr auto kPeriod = 20ms, kPeriodOfAsking = 200ms;

}  // namespace

Watchdog::Watchdog(Recorder& recorder, Duties duties)
    : recorder_(recorder), duties_(std::move(duties)), watch_([this] { Watch(); }), ask_([this] { Ask(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  wake_.notify_all();
  watch_.join();
  ask_.join();
}

bool Watchdog::Sleep(std::chrono::milliseconds period) {
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, period, [this] { return stopped_; });
}

void Watchdog::Watch() {
  auto last = Clock::now();
  while (Sleep(kPeriod)) {
    recorder_.Refresh();
    // A process that was stopped, or a machine that was asleep, has not waited meanwhile.
    const auto now = Clock::now();
    const auto passed = std::min<std::chrono::nanoseconds>(now - last, 10 * kPeriod);
    last = now;
    if (!Stuck(passed)) continue;
    const double seconds = std::chrono::duration<double>(duties_.limit).count();
    return duties_.end(FailureKind::kTimeOut, ReadEntry(recorder_.page(), current_),
                       absl::StrCat("no progress for ", seconds, " seconds"));
  }
}

void Watchdog::Ask() {
  while (Sleep(kPeriodOfAsking)) {
    const std::optional<CommunicationError> failure = duties_.find_failure();
    if (failure)
      return duties_.end(failure->kind(), ReadEntry(recorder_.page(), recorder_.done() + 1), failure->what());
  }
}

bool Watchdog::Stuck(std::chrono::nanoseconds passed) {
  const uint64_t done = recorder_.done();
  const uint64_t current = done < recorder_.begun() ? done + 1 : 0;
  const std::optional<RecordedInstruction> instruction = ReadEntry(recorder_.page(), current);
  const bool waits = instruction && instruction->state == RecorderState::kWaiting;
  const bool limited = current != 0 && (waits || current <= recorder_.launched());
  waited_ = current == current_ && limited == limited_ ? waited_ + passed : std::chrono::nanoseconds(0);
  current_ = current, limited_ = limited;
  return limited_ && waited_ > duties_.limit;
}

}  // namespace planwright::executor
