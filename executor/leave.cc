#include "executor/leave.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
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
  if (Recorder* recorder = recorder_of_this_rank) recorder->Fail(status, message.c_str());
  std::fprintf(stderr, "%s\n", message.c_str());
  std::fflush(nullptr);
  // Another thread may stumble over what is taken away under its feet; that is no news.
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) std::signal(number, ExitNow);
  AbortCommunication(device_of_this_rank, std::chrono::seconds(1));
  _exit(status);
}

}  // namespace planwright::executor
