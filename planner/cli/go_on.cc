#include "planner/cli/go_on.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <set>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/files/exit_status.h"
#include "planner/base/text/utf8.h"
#include "planner/run/slurm/job_files.h"
#include "planner/state/checkpoint/run_lives.h"
#include "planner/wire/records/routing_folder.h"

namespace planwright {
namespace {

// A byte that a message does not show as it is.
bool IsShown(std::string_view text, size_t at, size_t length) {
  return length > 0 && static_cast<unsigned char>(text[at]) >= ' ' && !IsHiddenControl(text, at, length);
}

// $'a\nb', which bash, zsh and ksh read as the text with its control characters and bytes that are no UTF-8.
std::string EscapedWord(std::string_view text) {
  std::string word = "$'";
  for (size_t at = 0; at < text.size();) {
    const size_t length = CodePointLength(text, at);
    if (IsShown(text, at, length)) {
      if (text[at] == '\'' || text[at] == '\\') word += '\\';
      word.append(text.substr(at, length));
      at += length;
      continue;
    }
    // Three octal digits: a shell may read more than two of hexadecimal ones.
    for (const size_t end = at + std::max<size_t>(length, 1); at < end; ++at)
      word += absl::StrFormat("\\%03o", static_cast<unsigned char>(text[at]));
  }
  return word + "'";
}

}  // namespace

std::string ShellWord(const std::string& text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) || std::string_view("%+,-./:=@_").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return text;
  for (size_t at = 0; at < text.size();) {
    const size_t length = CodePointLength(text, at);
    if (!IsShown(text, at, length)) return EscapedWord(text);
    at += length;
  }
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

namespace {

// This program, as the shell was asked for it.
std::string CalledAs() {
  std::string name;
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::getline(file, name, '\0');
  return name.empty() ? "plan" : name;
}

}  // namespace

bool StoppedEarly(const Plan& plan, const RunOptions& options, const Outcome& outcome) {
  return outcome.exit_code == kExitSuccess && StepsOf(plan, options) < plan.budget.steps;
}

std::string LaunchAgain(const Arguments& arguments, const std::string& run_dir, bool stopped_early) {
  static const std::set<std::string, std::less<>> kLeftOut = {"--run-dir", "--trace", "--record-routing"};
  std::string command = ShellWord(CalledAs()) + " launch";
  for (const std::string& word : arguments.words) command += " " + ShellWord(word);
  for (const auto& [name, value] : arguments.given) {
    if (kLeftOut.contains(name) || (stopped_early && name == "--steps")) continue;
    command += " " + name + (value.empty() ? "" : " " + ShellWord(value));
  }
  return command + " --run-dir " + ShellWord(run_dir);
}

std::string SubmitAgain(const std::string& program, const std::string& run_dir, const std::string& task,
                        bool stopped_early) {
  if (stopped_early) {  // the number of steps is in the job's files
    return ShellWord(program) + " launch " + ShellWord(run_dir + "/job/plan.json") + " --slurm --run-dir " +
           ShellWord(run_dir);
  }
  return "sbatch " + (task.empty() ? "" : "--array=" + ShellWord(task) + " ") + ShellWord(JobScriptPath(run_dir));
}

std::string GoOnText(const Plan& plan, const RunOptions& options, const Outcome& outcome, const std::string& command) {
  // The same command would end in the same way: the message says what to change.
  static const std::set<int> kAsBefore = {kExitInvalid, kExitDamaged};
  if (outcome.exit_code == kExitReplaced || kAsBefore.contains(outcome.exit_code)) return "";
  const bool done = outcome.exit_code == kExitSuccess;
  if (done && !StoppedEarly(plan, options, outcome)) return "";
  // The command asks for all steps, and the choices may end before.
  if (done && !options.replay_routing.empty() &&
      !CheckReplayRouting(plan, plan.budget.steps, options.replay_routing).ok())
    return "";
  const int64_t step = plan.checkpoint.every_steps == 0 ? 0 : NewestStep(options.run_dir);
  // The same command would fail again until a file or an option is mended; what was trained before is kept.
  const bool input = outcome.exit_code == kExitUsage;
  if (input && step == 0) return "";
  if (plan.checkpoint.every_steps == 0) {
    return done ? "" : "nothing was kept to go on from: with checkpoint.every_steps=N a run keeps checkpoints\n";
  }
  const bool by_numbers = outcome.exit_code == kExitNumerics || outcome.exit_code == kExitDiverged;
  return absl::StrCat(
      input ? "once that is mended, " : "",
      step > 0 ? absl::StrCat("to go on after step ", step) : "no checkpoint was written; to begin again",
      done ? absl::StrCat(" of ", plan.budget.steps) : "",
      by_numbers ? "; with this recipe the same will happen again" : "", ":\n  ", command, "\n");
}

}  // namespace planwright
