#include "planner/run/slurm/slurm_commands.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "planner/plan/slurm_options.h"
#include "planner/run/launch/program_output.h"
#include "planner/run/launch/rank_environment.h"
#include "planner/wire/records/run_timeout.h"

namespace planwright {

absl::StatusOr<std::string> FindProgram(const std::string& name) {
  const char* path = std::getenv("PATH");
  for (const auto folder : absl::StrSplit(path == nullptr ? "/usr/bin:/bin" : path, ':')) {
    const std::string candidate = std::string(folder) + "/" + name;
    if (!folder.empty() && access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return absl::NotFoundError("there is no program " + name + " in PATH; is this a machine of a Slurm cluster?");
}

absl::StatusOr<std::string> RunSlurm(const std::vector<std::string>& arguments, std::chrono::milliseconds patience) {
  const absl::StatusOr<std::string> program = FindProgram(arguments[0]);
  if (!program.ok()) return program.status();
  std::vector<std::string> command = arguments;
  command[0] = *program;
  if (const absl::StatusOr<std::chrono::milliseconds> timeout = RunTimeout(); timeout.ok())
    patience = std::min(patience, *timeout);
  const absl::StatusOr<std::string> printed = OutputOf(command, OwnEnvironment(), patience);
  if (!absl::IsDeadlineExceeded(printed.status())) return printed;
  return absl::DeadlineExceededError(
      absl::StrCat(printed.status().message(), "; ask whether the controller of Slurm does: scontrol ping"));
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
  const absl::Status tested = RunSlurm(SbatchCommand({"--test-only", path})).status();
  return tested;
}

std::vector<Partition> ReadPartitions(const std::string& printed) {
  std::vector<Partition> partitions;
  const std::vector<std::string> lines = absl::StrSplit(printed, '\n', absl::SkipEmpty());
  for (const std::string& line : lines) {
    const std::vector<std::string> fields = absl::StrSplit(line, '|');
    Partition one = {.name = std::string(absl::StripAsciiWhitespace(fields[0]))};
    one.is_default = one.name.ends_with('*');
    if (one.is_default) one.name.pop_back();
    if (one.name.empty()) continue;
    if (fields.size() > 1)
      one.most_seconds = SlurmSeconds(std::string(absl::StripAsciiWhitespace(fields[1])));  // not of "infinite"
    // "8+": the least of several, where they are not told apart.
    int cores = 0;
    const bool exact = fields.size() > 2 && absl::SimpleAtoi(fields[2], &cores);
    if (exact) one.most_cores = cores;
    const auto before = std::find_if(partitions.begin(), partitions.end(),
                                     [&](const Partition& other) { return other.name == one.name; });
    if (before == partitions.end()) {
      partitions.push_back(std::move(one));
    } else {
      before->most_cores = std::max(before->most_cores, one.most_cores);
    }
  }
  return partitions;
}

absl::StatusOr<std::vector<Partition>> PartitionsHere() {
  const absl::StatusOr<std::string> printed =
      RunSlurm({"sinfo", "--noheader", "--all", "--exact", "--format=%P|%l|%c"});
  if (!printed.ok()) return printed.status();
  return ReadPartitions(*printed);
}

std::optional<bool> SrunHasContainers() {
  const absl::StatusOr<std::string> help = RunSlurm({"srun", "--help"});
  if (!help.ok()) return std::nullopt;
  return absl::StrContains(*help, "--container-image");
}

std::string JobOfScript(const std::string& path, std::chrono::milliseconds patience) {
  const absl::StatusOr<std::string> printed = RunSlurm({"squeue", "--me", "--noheader", "--format=%i %T %o"}, patience);
  if (!printed.ok()) return "";
  for (const auto line : absl::StrSplit(*printed, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(' ', 2));
    if (fields.size() == 3 && fields[2] == path) return fields[0] + " (" + fields[1] + ")";
  }
  return "";
}

absl::StatusOr<std::string> SubmitScript(const std::string& path) {
  if (absl::Status found = FindProgram("sbatch").status(); !found.ok()) return found;
  const absl::StatusOr<std::string> printed = RunSlurm(SbatchCommand({"--parsable", path}));
  if (!printed.ok()) return printed.status();
  const std::vector<std::string> fields = absl::StrSplit(*printed, ';');  // JOB[;CLUSTER]
  return std::string(absl::StripAsciiWhitespace(fields[0]));
}

double SecondsUntilKilled() {
  constexpr std::chrono::seconds kPatience{10};  // a run begins without it
  const absl::StatusOr<std::string> printed = RunSlurm({"scontrol", "show", "config"}, kPatience);
  if (!printed.ok()) return 0;
  for (const auto line : absl::StrSplit(*printed, '\n', absl::SkipEmpty())) {  // "KillWait                = 30 sec"
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    double seconds = 0;
    if (words.size() > 2 && words[0] == "KillWait" && absl::SimpleAtod(words[2], &seconds)) return seconds;
  }
  return 0;
}

absl::Status RequeueJob(const std::string& job) { return RunSlurm({"scontrol", "requeue", job}).status(); }

}  // namespace planwright
