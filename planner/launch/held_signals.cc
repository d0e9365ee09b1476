#include "planner/launch/held_signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <initializer_list>

namespace planwright {

HeldSignals::HeldSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : {SIGCHLD, SIGINT, SIGTERM, SIGUSR1}) sigaddset(&set, number);
  for (int number : {SIGHUP, SIGQUIT}) {
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

}  // namespace planwright
