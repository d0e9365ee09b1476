#include "planner/run/launch/program_output.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "planner/base/json/json_limits.h"
#include "planner/run/launch/child_process.h"
#include "planner/run/launch/line_pipe.h"
#include "planner/run/launch/rank_environment.h"
#include "planner/wire/connection/descriptor.h"

namespace planwright {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// Keeps the first lines of what a program prints. The others are of no interest.
void Keep(std::string_view line, std::string& text) {
  if (text.size() + line.size() < kLongestProgramOutput) (text += line) += "\n";
}

// Whether the process has ended; it stays a zombie. True also if nobody can tell.
bool HasEnded(int pid) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == pid;
}

}  // namespace

absl::StatusOr<std::string> OutputOf(const std::vector<std::string>& arguments) {
  return OutputOf(arguments, OwnEnvironment());
}

absl::StatusOr<std::string> OutputOf(const std::vector<std::string>& arguments,
                                     const std::vector<std::string>& environment,
                                     const std::optional<std::chrono::milliseconds>& patience) {
  const absl::StatusOr<ChildProcess> child = Start({.arguments = arguments, .environment = environment});
  if (!child.ok()) return child.status();
  LinePipe output(child->output), errors(child->errors);
  std::string printed, complaint;
  const auto drain = [&] {
    output.Drain([&](std::string_view line) { Keep(line, printed); });
    errors.Drain([&](std::string_view line) { Keep(line, complaint); });
  };
  // Not the end of its output: a process that it leaves behind keeps that open.
  const Descriptor end(static_cast<int>(syscall(SYS_pidfd_open, child->pid, 0)));
  const auto until = Clock::now() + patience.value_or(0ms);
  bool late = false;
  while (!late && !HasEnded(child->pid)) {
    pollfd fds[] = {{output.fd(), POLLIN, 0}, {errors.fd(), POLLIN, 0}, {end.get(), POLLIN, 0}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    // A kernel without pidfd is asked again and again.
    const int most = end.get() >= 0 ? INT_MAX : 50;
    const int wait = patience ? static_cast<int>(std::clamp<int64_t>(left.count(), 0, most)) : most;
    poll(fds, std::size(fds), wait);
    drain();
    late = patience && Clock::now() >= until && !HasEnded(child->pid);
  }
  kill(-child->pid, SIGKILL);  // the rest of its group, too
  drain();
  int status = 0, told = 0;
  do {
    told = waitpid(child->pid, &status, 0);
  } while (told < 0 && errno == EINTR);
  const std::string name = std::filesystem::path(arguments[0]).filename().string();
  const std::string said(absl::StripAsciiWhitespace(complaint.empty() ? printed : complaint));
  const std::string its_words = said.empty() ? "" : ": " + said;
  if (late) {
    const double seconds = std::chrono::duration<double>(*patience).count();
    return absl::DeadlineExceededError(absl::StrCat(name, " has not answered within ", seconds, " s", its_words));
  }
  if (told < 0) return absl::UnavailableError("nobody knows how " + arguments[0] + " ended: " + std::strerror(errno));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return printed;
  return absl::UnavailableError(name + " failed" + its_words);
}

}  // namespace planwright
