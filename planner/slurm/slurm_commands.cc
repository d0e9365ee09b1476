#include "planner/slurm/slurm_commands.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "planner/launch/child_process.h"
#include "planner/launch/line_pipe.h"
#include "planner/launch/rank_environment.h"
#include "planner/plan/json_limits.h"

namespace planwright {

namespace {

// Keeps the first lines of what a program prints. The others are of no interest.
void Keep(std::string_view line, std::string& text) {
  if (text.size() + line.size() < kLongestProgramOutput) (text += line) += "\n";
}

}  // namespace

absl::StatusOr<std::string> FindProgram(const std::string& name) {
  const char* path = std::getenv("PATH");
  for (const auto folder : absl::StrSplit(path == nullptr ? "/usr/bin:/bin" : path, ':')) {
    const std::string candidate = std::string(folder) + "/" + name;
    if (!folder.empty() && access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return absl::NotFoundError("there is no program " + name + " in PATH; is this a machine of a Slurm cluster?");
}

absl::StatusOr<std::string> RunProgram(const std::vector<std::string>& arguments) {
  const absl::StatusOr<std::string> program = FindProgram(arguments[0]);
  if (!program.ok()) return program.status();
  Command command{.arguments = arguments, .environment = OwnEnvironment()};
  command.arguments[0] = *program;
  const absl::StatusOr<ChildProcess> child = Start(command);
  if (!child.ok()) return child.status();
  LinePipe output(child->output), errors(child->errors);
  std::string printed, complaint;
  while (output.fd() >= 0 || errors.fd() >= 0) {
    pollfd fds[] = {{output.fd(), POLLIN, 0}, {errors.fd(), POLLIN, 0}};
    poll(fds, 2, -1);
    output.Drain([&](std::string_view line) { Keep(line, printed); });
    errors.Drain([&](std::string_view line) { Keep(line, complaint); });
  }
  int status = 0;
  while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return printed;
  const std::string said(absl::StripAsciiWhitespace(complaint.empty() ? printed : complaint));
  return absl::UnavailableError(arguments[0] + " failed" + (said.empty() ? "" : ": " + said));
}

absl::StatusOr<std::string> SubmitScript(const std::string& path) {
  const absl::StatusOr<std::string> printed = RunProgram({"sbatch", "--parsable", path});
  if (!printed.ok()) return printed.status();
  const std::vector<std::string> fields = absl::StrSplit(*printed, ';');  // JOB[;CLUSTER]
  return std::string(absl::StripAsciiWhitespace(fields[0]));
}

absl::Status RequeueJob(const std::string& job) { return RunProgram({"scontrol", "requeue", job}).status(); }

}  // namespace planwright
