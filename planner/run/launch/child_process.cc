#include "planner/run/launch/child_process.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "planner/base/process/inherited.h"
#include "planner/run/launch/pipe.h"

namespace planwright {
namespace {

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Runs in the child between fork and exec, so it may use async-signal-safe calls only. Returns only on failure, with
// errno set.
void BecomeProgram(char** arguments, char** environment, const Command& command, const cpu_set_t* cores, int parent,
                   const Pipe& output, const Pipe& errors) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // If the parent died before prctl took effect, no SIGKILL will come.
  if (getppid() != parent) _exit(0);
  // A core that was taken away meanwhile is no reason to fail.
  if (cores != nullptr) sched_setaffinity(0, sizeof *cores, cores);
  for (int number = 1; number <= SIGRTMAX; ++number) signal(number, SIG_DFL);  // of some it fails
  if (command.outlives_sigterm) signal(SIGTERM, SIG_IGN);
  sigset_t held;
  sigemptyset(&held);
  if (command.holds_stop_signal) sigaddset(&held, SIGUSR1);
  sigprocmask(SIG_SETMASK, &held, nullptr);
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(output.write, 1) < 0 || dup2(errors.write, 2) < 0) return;
  for (const int descriptor : command.inherited) fcntl(descriptor, F_SETFD, 0);  // no longer closed on exec
  execve(arguments[0], arguments, environment);
}

}  // namespace

absl::StatusOr<ChildProcess> Start(const Command& command) {
  Pipe output, errors, failure;
  if (!output.Open() || !errors.Open() || !failure.Open()) {
    return absl::ResourceExhaustedError(std::string("cannot open a pipe: ") + std::strerror(errno));
  }
  std::vector<char*> arguments = Pointers(command.arguments), environment = Pointers(command.environment);
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (const int core : command.cores) CPU_SET(core, &cores);
  KeepEndsOfChildren();
  const int parent = getpid();
  const int pid = fork();
  if (pid < 0) return absl::ResourceExhaustedError(std::string("cannot start a process: ") + std::strerror(errno));
  if (pid == 0) {
    // `failure` closes on exec. So the parent reads an errno if exec failed, and end of file if it succeeded.
    BecomeProgram(arguments.data(), environment.data(), command, command.cores.empty() ? nullptr : &cores, parent,
                  output, errors);
    const int error = errno;
    [[maybe_unused]] const ssize_t written = write(failure.write, &error, sizeof error);
    _exit(127);
  }
  close(std::exchange(failure.write, -1));
  int error = 0;
  if (read(failure.read, &error, sizeof error) == sizeof error) {
    waitpid(pid, nullptr, 0);
    return absl::NotFoundError("cannot run " + command.arguments[0] + ": " + std::strerror(error));
  }
  return ChildProcess{pid, output.TakeRead(), errors.TakeRead()};
}

}  // namespace planwright
