#include "planner/run/launch/supervise.h"

#include <signal.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "planner/base/files/exit_status.h"
#include "planner/run/launch/launch_log.h"
#include "planner/wire/fork/end_signal.h"

namespace planwright {
namespace {

using Clock = Processes::Clock;
using namespace std::chrono_literals;

class Supervisor {
 public:
  Supervisor(Processes& processes, const LineSink& sink, const SupervisionTimes& times)
      : processes_(processes), sink_(sink), times_(times), alive_(processes.count()) {}

  Supervision Run() {
    while (alive_ > 0) {
      const std::vector<ProcessEvent> events = processes_.Wait(Until());
      // A signal to us ends the children too if it went to the whole process group, so it comes first.
      for (const ProcessEvent& event : events) {
        if (event.kind == ProcessEvent::Kind::kInterrupt) Interrupt(event.signal);
      }
      for (const ProcessEvent& event : events) Take(event);
      EndStopped();
      EndOthers();
    }
    return {ends_, Cause(), stopped_, interrupted_by_, out_of_time_};
  }

 private:
  enum class Stage { kRunning, kSaving, kSettling, kEnding, kKilled };

  std::optional<Clock::time_point> Until() const {
    std::optional<Clock::time_point> until = deadline_;
    if (stage_ != Stage::kRunning) return until;
    for (const auto& [rank, since] : stopped_since_)
      until = std::min(until.value_or(since + times_.stopped), since + times_.stopped);
    return until;
  }

  void Take(const ProcessEvent& event) {
    switch (event.kind) {
      case ProcessEvent::Kind::kLine: return sink_(event.rank, event.is_error, event.text);
      case ProcessEvent::Kind::kStopped: stopped_since_.emplace(event.rank, Clock::now()); return;
      case ProcessEvent::Kind::kContinued: stopped_since_.erase(event.rank); return;
      case ProcessEvent::Kind::kInterrupt: return;
      case ProcessEvent::Kind::kEndComes: return EndComes();
      case ProcessEvent::Kind::kEnded:
      case ProcessEvent::Kind::kUnreachable: return Ended(event);
    }
  }

  void Ended(const ProcessEvent& event) {
    --alive_;
    ProcessEnd end{event.rank, event.exit_status, event.signal};
    end.sent_by_us = event.signal != 0 && sent_.contains(event.signal);
    (event.kind == ProcessEvent::Kind::kUnreachable ? end.unreachable : end.memory) = event.text;
    stopped_since_.erase(event.rank);
    // A child that has saved its work leaves others that are still saving theirs.
    const bool alone = stage_ == Stage::kRunning || (stage_ == Stage::kSaving && end.exit_status != kExitPreempted);
    if (end.failed() && alone) Enter(Stage::kSettling, times_.settle);
    ends_.push_back(std::move(end));
  }

  // The first signal is passed on to the ranks, so that they can end well. A second one kills them at once.
  void Interrupt(int number) {
    // stderr is closed too, or a batch system announces an end that is asked for already: nobody asked again.
    if (interrupted_by_ != 0 && (number == SIGPIPE || number == SIGUSR1)) return;
    // What was announced has come: the ranks go on saving as long as they are let.
    if (interrupted_by_ == SIGUSR1 && !std::exchange(announced_end_came_, true)) return;
    if (interrupted_by_ != 0) return Send(SIGKILL);
    interrupted_by_ = number;
    LogEvent("interrupted by signal " + std::to_string(number));
    const bool saves = times_.save.count() > 0 && stage_ == Stage::kRunning;
    Send(saves ? SIGUSR1 : kEndSignal);
    if (times_.interrupted) times_.interrupted(saves);
    if (saves) return Enter(Stage::kSaving, times_.save + (times_.until_they_stop ? times_.until_they_stop() : 0ms));
    Enter(Stage::kEnding, times_.grace);
  }

  void EndComes() {
    if (times_.until_killed.count() == 0 || stage_ != Stage::kSaving || end_comes_) return;
    end_comes_ = true;
    deadline_ = std::min(*deadline_, Clock::now() + times_.until_killed);
  }

  void EndStopped() {
    if (stage_ != Stage::kRunning) return;
    for (const auto& [rank, since] : stopped_since_) {
      if (Clock::now() < since + times_.stopped) continue;
      Enter(Stage::kEnding, times_.grace);
      return Send(kEndSignal);
    }
  }

  void EndOthers() {
    if (!deadline_ || Clock::now() < *deadline_) return;
    if (stage_ == Stage::kSettling || stage_ == Stage::kSaving) {
      out_of_time_ = end_comes_ && stage_ == Stage::kSaving;
      Send(kEndSignal);
      Enter(Stage::kEnding, times_.grace);
    } else if (stage_ == Stage::kEnding) {
      Send(SIGKILL);
      stage_ = Stage::kKilled;
      deadline_.reset();
    }
  }

  void Send(int number) {
    sent_.insert(number);
    processes_.Signal(number);
  }

  void Enter(Stage stage, std::chrono::milliseconds time) {
    if (stage_ == Stage::kRunning && !stopped_since_.empty()) stopped_ = stopped_since_.begin()->first;
    stage_ = stage;
    deadline_ = Clock::now() + time;
  }

  std::optional<ProcessEnd> Cause() const {
    const bool at_start = Supervision{.ends = ends_, .interrupted_by = interrupted_by_}.ended_at_start();
    const ProcessEnd* follower = nullptr;
    for (const ProcessEnd& end : ends_) {
      if (!end.failed() || end.sent_by_us) continue;
      if (interrupted_by_ != 0 && (end.exit_status == kExitPreempted || end.exit_status == 128 + interrupted_by_))
        continue;
      // Lines before a rank end by what ends all processes of a job.
      if (interrupted_by_ == SIGTERM && end.signal == SIGTERM) continue;
      if (end.signal != 0 || !MayFollowFromAnother(end.exit_status)) return end;
      if (!follower && !at_start) follower = &end;
    }
    if (!follower) return std::nullopt;
    return *follower;
  }

  Processes& processes_;
  const LineSink& sink_;
  const SupervisionTimes times_;
  int alive_;
  std::vector<ProcessEnd> ends_;
  std::map<int, Clock::time_point> stopped_since_;  // of ranks that are stopped
  std::set<int> sent_;                              // signals
  Stage stage_ = Stage::kRunning;
  std::optional<Clock::time_point> deadline_;
  std::optional<int> stopped_;
  int interrupted_by_ = 0;
  bool announced_end_came_ = false, end_comes_ = false, out_of_time_ = false;
};

}  // namespace

bool Supervision::ended_at_start() const {
  return interrupted_by != 0 && std::any_of(ends.begin(), ends.end(), [](const ProcessEnd& end) {
           return end.signal == SIGUSR1 && end.sent_by_us;
         });
}

Supervision Supervise(Processes& processes, const LineSink& sink, const SupervisionTimes& times) {
  return Supervisor(processes, sink, times).Run();
}

}  // namespace planwright
