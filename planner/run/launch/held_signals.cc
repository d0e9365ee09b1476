#include "planner/run/launch/held_signals.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <initializer_list>

namespace planwright {

HeldSignals::HeldSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : {SIGCHLD, SIGINT, SIGTERM, SIGUSR1}) sigaddset(&set, number);
  for (int number : {SIGHUP, SIGQUIT, SIGPIPE}) {
    struct sigaction action {};
    if (sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) sigaddset(&set, number);
  }
  sigprocmask(SIG_BLOCK, &set, &before_);
  fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

HeldSignals::~HeldSignals() {
  close(fd_);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

int HeldSignals::Next() {
  signalfd_siginfo info;
  while (read(fd_, &info, sizeof info) == sizeof info) {
    if (info.ssi_signo != SIGCHLD) return static_cast<int>(info.ssi_signo);
  }
  return 0;
}

int HeldSignals::WaitFor(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  for (;;) {
    if (const int number = Next(); number != 0) return number;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return 0;
    pollfd fd = {fd_, POLLIN, 0};
    poll(&fd, 1, static_cast<int>(std::min<int64_t>(left.count(), INT_MAX)));
  }
}

}  // namespace planwright
