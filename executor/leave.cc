#include "executor/leave.h"

#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>

#include "executor/communication/communicators.h"

namespace planwright::executor {
namespace {

std::atomic<Recorder*> recorder_of_this_rank{nullptr};
at::Device device_of_this_rank = at::kCPU;
std::atomic<bool> leaving{false};
std::atomic<int> status_of_this_rank{0};

void ExitNow(int) { _exit(status_of_this_rank); }

}  // namespace

void LeaveThrough(Recorder& recorder) { recorder_of_this_rank = &recorder; }
void LeaveThrough(at::Device device) { device_of_this_rank = device; }

void Leave(int status, const std::string& message) {
  if (leaving.exchange(true)) {
    for (;;) pause();  // another thread is on its way out
  }
  status_of_this_rank = status;
  // Whoever ends the others for a failure of this rank shall learn its status. What blocks is cut short; and another
  // thread may stumble over what is taken away under its feet, which is no news.
  std::signal(SIGTERM, SIG_IGN);
  for (int number : {SIGALRM, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) std::signal(number, ExitNow);
  const itimerval second = {.it_interval = {}, .it_value = {.tv_sec = 1, .tv_usec = 0}};
  setitimer(ITIMER_REAL, &second, nullptr);
  if (Recorder* recorder = recorder_of_this_rank) recorder->Fail(status, message.c_str());
  std::fprintf(stderr, "%s\n", message.c_str());
  std::fflush(nullptr);
  AbortCommunication(device_of_this_rank);
  _exit(status);
}

}  // namespace planwright::executor
