#include "executor/rank/stop_request.h"

#include <atomic>
#include <csignal>

#include "executor/log/log.h"

namespace planwright::executor {
namespace {

std::atomic<bool> asked = false;  // lock-free, so a signal handler may set it
static_assert(std::atomic<bool>::is_always_lock_free);

}  // namespace

void EndIfAsked() {
  signal(SIGUSR1, SIG_DFL);
  sigset_t listened;
  sigemptyset(&listened);
  sigaddset(&listened, SIGUSR1);
  pthread_sigmask(SIG_UNBLOCK, &listened, nullptr);
}

void ListenForStop() {
  struct sigaction action {};
  action.sa_handler = [](int) { asked = true; };
  action.sa_flags = SA_RESTART;  // calls that wait go on
  sigaction(SIGUSR1, &action, nullptr);
}

bool AskedToStop() {
  static std::atomic<bool> logged = false;
  if (asked && !logged.exchange(true)) LogInfo("asked to save and stop (SIGUSR1)");
  return asked;
}

}  // namespace planwright::executor
