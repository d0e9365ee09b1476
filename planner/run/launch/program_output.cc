#include "planner/run/launch/program_output.h"

#include <poll.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "absl/strings/ascii.h"
#include "planner/base/json/json_limits.h"
#include "planner/run/launch/child_process.h"
#include "planner/run/launch/line_pipe.h"
#include "planner/run/launch/rank_environment.h"

namespace planwright {
namespace {

// Keeps the first lines of what a program prints. The others are of no interest.
void Keep(std::string_view line, std::string& text) {
  if (text.size() + line.size() < kLongestProgramOutput) (text += line) += "\n";
}

}  // namespace

absl::StatusOr<std::string> OutputOf(const std::vector<std::string>& arguments) {
  return OutputOf(arguments, OwnEnvironment());
}

absl::StatusOr<std::string> OutputOf(const std::vector<std::string>& arguments,
                                     const std::vector<std::string>& environment) {
  const absl::StatusOr<ChildProcess> child = Start({.arguments = arguments, .environment = environment});
  if (!child.ok()) return child.status();
  LinePipe output(child->output), errors(child->errors);
  std::string printed, complaint;
  while (output.fd() >= 0 || errors.fd() >= 0) {
    pollfd fds[] = {{output.fd(), POLLIN, 0}, {errors.fd(), POLLIN, 0}};
    poll(fds, 2, -1);
    output.Drain([&](std::string_view line) { Keep(line, printed); });
    errors.Drain([&](std::string_view line) { Keep(line, complaint); });
  }
  int status = 0, told = 0;
  do {
    told = waitpid(child->pid, &status, 0);
  } while (told < 0 && errno == EINTR);
  if (told < 0) return absl::UnavailableError("nobody knows how " + arguments[0] + " ended: " + std::strerror(errno));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return printed;
  const std::string said(absl::StripAsciiWhitespace(complaint.empty() ? printed : complaint));
  return absl::UnavailableError(std::filesystem::path(arguments[0]).filename().string() + " failed" +
                                (said.empty() ? "" : ": " + said));
}

}  // namespace planwright
