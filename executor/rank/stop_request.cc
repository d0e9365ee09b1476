#include "executor/rank/stop_request.h"

#include <atomic>
#include <csignal>

#include "executor/log/log.h"

namespace planwright::executor {
namespace {

std::atomic<bool> asked = false;  // lock-free, so a signal handler may set it
static_assert(std::atomic<bool>::is_always_lock_free);

}  // namespace

void ListenForStop() {
  struct sigaction action {};
  action.sa_handler = [](int) { asked = true; };
  action.sa_flags = SA_RESTART;  // calls that wait go on
  sigaction(SIGUSR1, &action, nullptr);
  // The launcher starts ranks with it blocked, so that it cannot end one that does not listen yet.
  sigset_t listened;
  sigemptyset(&listened);
  sigaddset(&listened, SIGUSR1);
  pthread_sigmask(SIG_UNBLOCK, &listened, nullptr);
}

bool AskedToStop() {
  static std::atomic<bool> logged = false;
  if (asked && !logged.exchange(true)) LogInfo("asked to save and stop (SIGUSR1)");
  return asked;
}

}  // namespace planwright::executor
