#include "planner/run/slurm/slurm_commands.h"

#include <unistd.h>

#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "planner/run/launch/program_output.h"

namespace planwright {

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
  std::vector<std::string> command = arguments;
  command[0] = *program;
  return OutputOf(command);
}

absl::Status TestScript(const std::string& path) {
  const absl::Status tested = RunProgram({"sbatch", "--test-only", path}).status();
  return absl::IsNotFound(tested) ? absl::OkStatus() : tested;
}

std::vector<std::string> PartitionsHere() {
  const absl::StatusOr<std::string> printed = RunProgram({"sinfo", "--noheader", "--all", "--format=%R"});
  if (!printed.ok()) return {};
  return absl::StrSplit(*printed, '\n', absl::SkipEmpty());
}

absl::StatusOr<std::string> SubmitScript(const std::string& path) {
  const absl::StatusOr<std::string> printed = RunProgram({"sbatch", "--parsable", path});
  if (!printed.ok()) return printed.status();
  const std::vector<std::string> fields = absl::StrSplit(*printed, ';');  // JOB[;CLUSTER]
  return std::string(absl::StripAsciiWhitespace(fields[0]));
}

absl::Status RequeueJob(const std::string& job) { return RunProgram({"scontrol", "requeue", job}).status(); }

}  // namespace planwright
