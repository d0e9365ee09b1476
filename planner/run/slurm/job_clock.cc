#include "planner/run/slurm/job_clock.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/numbers.h"

namespace planwright {
namespace {

double Now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

}  // namespace

JobClock::JobClock(const std::string& end_time, std::function<double()> margin, std::chrono::milliseconds period)
    : margin_(std::move(margin)), period_(period) {
  int64_t end = 0;
  if (!absl::SimpleAtoi(end_time, &end) || end <= 0) return;
  // The signal must reach the thread that waits for it.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  thread_ = std::thread([this, end] { Run(static_cast<double>(end)); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

JobClock::~JobClock() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void JobClock::Run(double end) {
  const double most = std::max(0.0, (end - Now()) / 2);
  std::unique_lock lock(mutex_);
  do {
    if (Now() < end - std::min(margin_(), most)) continue;
    kill(getpid(), SIGUSR1);
    return;
  } while (!changed_.wait_for(lock, period_, [this] { return done_; }));
}

}  // namespace planwright
