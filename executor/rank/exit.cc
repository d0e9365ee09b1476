#include "executor/rank/exit.h"

#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>

#include "executor/communication/communicators.h"
#include "executor/communication/failure.h"
#include "executor/log/log.h"
#include "executor/program/exit_error.h"
#include "planner/base/files/exit_status.h"
#include "planner/wire/fork/end_signal.h"

namespace planwright::executor {
namespace {

std::atomic<Recorder*> recorder_of_this_rank{nullptr};
at::Device device_of_this_rank = at::kCPU;
std::atomic<bool> leaving{false};
std::atomic<int> status_of_this_rank{0};

void ExitNow(int) { _exit(status_of_this_rank); }

int ExitStatusOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kFailedPrecondition: return kExitPlanMismatch;
    case absl::StatusCode::kUnavailable: return kExitPeerLost;
    case absl::StatusCode::kResourceExhausted: return kExitStorage;
    case absl::StatusCode::kDataLoss: return kExitDamaged;
    case absl::StatusCode::kAborted: return kExitReplaced;
    default: return kExitUsage;
  }
}

}  // namespace

void SetRecorderOfExit(Recorder& recorder) { recorder_of_this_rank = &recorder; }
void SetDeviceOfExit(at::Device device) { device_of_this_rank = device; }

void Exit(int status, const std::string& message) {
  if (leaving.exchange(true)) {
    for (;;) pause();  // another thread is on its way out
  }
  status_of_this_rank = status;
  // A launcher ends all ranks once one has failed, and others do so by SIGTERM. This rank's status must be out before.
  for (int number : {kEndSignal, SIGTERM}) std::signal(number, SIG_IGN);
  // From here on the first failure is the only one that matters. The alarm ends the process if a call below blocks. The
  // other signals come from threads that still use a communicator while it is aborted: they end it with the same
  // status.
  for (int number : {SIGALRM, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) std::signal(number, ExitNow);
  const itimerval second = {.it_interval = {}, .it_value = {.tv_sec = 1, .tv_usec = 0}};
  setitimer(ITIMER_REAL, &second, nullptr);
  if (Recorder* recorder = recorder_of_this_rank) recorder->Fail(status, message.c_str());
  std::fprintf(stderr, "%s\n", message.c_str());
  std::fflush(nullptr);
  LogError("ends with exit status " + std::to_string(status) + ": " + message);
  AbortCommunication(device_of_this_rank);
  _exit(status);
}

void ExitBecauseOf(const std::exception& error, const std::string& where) {
  if (const auto* exit = dynamic_cast<const ExitError*>(&error)) Exit(exit->status(), exit->what());
  Exit(ExitStatusOf(FailureKindOf(error)), where + MessageOf(error));
}

void ExitUnlessOk(const absl::Status& status) {
  if (!status.ok()) Exit(ExitStatusOf(status.code()), "executor: " + std::string(status.message()));
}

}  // namespace planwright::executor
