#include "planner/run/slurm/slurm_commands.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
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

std::vector<std::string> SbatchVariables() {
  std::vector<std::string> names;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view word = *variable;
    if (word.starts_with("SBATCH_")) names.emplace_back(word.substr(0, word.find('=')));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> SbatchCommand(const std::vector<std::string>& arguments) {
  std::vector<std::string> command;
  const std::vector<std::string> variables = SbatchVariables();
  if (!variables.empty()) command.emplace_back("env");
  for (const std::string& name : variables) command.insert(command.end(), {"-u", name});
  command.emplace_back("sbatch");
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

absl::Status TestScript(const std::string& path) {
  if (absl::Status found = FindProgram("sbatch").status(); !found.ok()) return absl::OkStatus();
  const absl::Status tested = RunProgram(SbatchCommand({"--test-only", path})).status();
  return tested;
}

std::vector<std::string> PartitionsHere() {
  const absl::StatusOr<std::string> printed = RunProgram({"sinfo", "--noheader", "--all", "--format=%R"});
  if (!printed.ok()) return {};
  return absl::StrSplit(*printed, '\n', absl::SkipEmpty());
}

std::string JobOfScript(const std::string& path) {
  const absl::StatusOr<std::string> printed = RunProgram({"squeue", "--me", "--noheader", "--format=%i %T %o"});
  if (!printed.ok()) return "";
  for (const auto line : absl::StrSplit(*printed, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(' ', 2));
    if (fields.size() == 3 && fields[2] == path) return fields[0] + " (" + fields[1] + ")";
  }
  return "";
}

absl::StatusOr<std::string> SubmitScript(const std::string& path) {
  if (absl::Status found = FindProgram("sbatch").status(); !found.ok()) return found;
  const absl::StatusOr<std::string> printed = RunProgram(SbatchCommand({"--parsable", path}));
  if (!printed.ok()) return printed.status();
  const std::vector<std::string> fields = absl::StrSplit(*printed, ';');  // JOB[;CLUSTER]
  return std::string(absl::StripAsciiWhitespace(fields[0]));
}

double SecondsUntilKilled() {
  const absl::StatusOr<std::string> printed = RunProgram({"scontrol", "show", "config"});
  if (!printed.ok()) return 0;
  for (const auto line : absl::StrSplit(*printed, '\n', absl::SkipEmpty())) {  // "KillWait                = 30 sec"
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    double seconds = 0;
    if (words.size() > 2 && words[0] == "KillWait" && absl::SimpleAtod(words[2], &seconds)) return seconds;
  }
  return 0;
}

absl::Status RequeueJob(const std::string& job) { return RunProgram({"scontrol", "requeue", job}).status(); }

}  // namespace planwright
