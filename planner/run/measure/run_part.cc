#include "planner/run/measure/run_part.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "absl/strings/str_cat.h"
#include "planner/base/files/exit_status.h"
#include "planner/run/launch/local_starter.h"
#include "planner/run/launch_run.h"

namespace planwright {
namespace {

// Ends the run of a part that takes too long, by the signal with which a user would.
class Alarm {
 public:
  Alarm() {
    // The signal must reach the thread that waits for it.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    thread_ = std::thread([this] { Wait(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ~Alarm() { Stop(); }

  // Whether it went off.
  bool Stop() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
    return rang_;
  }

 private:
  void Wait() {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, std::chrono::seconds(kLongestPartSeconds), [this] { return done_; })) return;
    rang_ = true;
    kill(getpid(), SIGTERM);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false, rang_ = false;
  std::thread thread_;
};

absl::StatusOr<Outcome> RunWith(const Plan& plan, const RunOptions& options, RankStarter& starter) {
  Alarm alarm;
  // What ranks print is in their logs.
  absl::StatusOr<Outcome> outcome = LaunchRun({plan}, options, starter, [](bool, std::string_view) {});
  if (alarm.Stop() && outcome.ok() && outcome->exit_code != kExitSuccess) {
    return absl::DeadlineExceededError(absl::StrCat("a part may take ", kLongestPartSeconds / 60,
                                                    " minutes, and this one was not done by then: measure a recipe "
                                                    "with shorter steps, such as one with fewer layers"));
  }
  return outcome;
}

}  // namespace

absl::StatusOr<Outcome> RunPart(const Plan& plan, const RunOptions& run, RankStarter* starter) {
  if (starter != nullptr) return RunWith(plan, run, *starter);
  absl::StatusOr<LocalStarter> here = LocalStarter::Open(plan.launch.interface);
  if (!here.ok()) return here.status();
  return RunWith(plan, run, *here);
}

}  // namespace planwright
