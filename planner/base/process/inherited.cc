#include "planner/base/process/inherited.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

namespace planwright {
namespace {

// Whoever starts a program may have closed its standard streams (`>&-`). Then the next files that it opens would get
// their numbers, and what it prints. Reading from one that was closed still fails, and so does printing to one.
void FillClosedStreams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // The lowest number that is free is this one.
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
  }
}

// A signal that stays blocked is never heard.
void UnblockSignals(std::initializer_list<int> kept) {
  sigset_t before, mask;
  sigprocmask(SIG_SETMASK, nullptr, &before);
  sigemptyset(&mask);
  for (const int number : kept) {
    if (sigismember(&before, number) == 1) sigaddset(&mask, number);
  }
  sigprocmask(SIG_SETMASK, &mask, nullptr);
}

}  // namespace

void SettleInherited(std::initializer_list<int> kept) {
  FillClosedStreams();
  signal(SIGXFSZ, SIG_IGN);
  KeepEndsOfChildren();
  UnblockSignals(kept);
  AllowManyFiles();
}

void AllowManyFiles() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

void KeepEndsOfChildren() {
  struct sigaction action {};
  if (sigaction(SIGCHLD, nullptr, &action) != 0) return;
  if (action.sa_handler == SIG_IGN || (action.sa_flags & SA_NOCLDWAIT) != 0) signal(SIGCHLD, SIG_DFL);
}

}  // namespace planwright
