#include "planner/cli/go_on.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <set>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "planner/checkpoint/run_lives.h"
#include "planner/run_files/exit_status.h"

namespace planwright {
namespace {

// A word that a shell reads as this text.
std::string ShellWord(const std::string& text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) || std::string_view("%+,-./:=@_").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

// This program, as the shell was asked for it.
std::string CalledAs() {
  std::string name;
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::getline(file, name, '\0');
  return name.empty() ? "plan" : name;
}

}  // namespace

std::string GoOnText(const Plan& plan, const Outcome& outcome, const Arguments& arguments, const std::string& run_dir) {
  // The same command would end in the same way: the message says what to change.
  static const std::set<int> kAsBefore = {kExitInvalid, kExitUsage, kExitDamaged};
  if (outcome.exit_code == kExitSuccess || outcome.exit_code == kExitReplaced || kAsBefore.contains(outcome.exit_code))
    return "";
  if (plan.checkpoint.every_steps == 0)
    return "nothing was kept to go on from: with checkpoint.every_steps=N a run keeps checkpoints\n";
  static const std::set<std::string, std::less<>> kLeftOut = {"--run-dir", "--trace", "--record-routing"};
  std::string command = ShellWord(CalledAs()) + " launch";
  for (const std::string& word : arguments.words) command += " " + ShellWord(word);
  for (const auto& [name, value] : arguments.options) {
    if (kLeftOut.contains(name)) continue;
    command += " " + name + (value.empty() ? "" : " " + ShellWord(value));
  }
  command += " --run-dir " + ShellWord(run_dir);
  const int64_t step = NewestStep(run_dir);
  const bool by_numbers = outcome.exit_code == kExitNumerics || outcome.exit_code == kExitDiverged;
  return absl::StrCat(
      step > 0 ? absl::StrCat("to go on after step ", step) : "no checkpoint was written; to begin again",
      by_numbers ? "; with this recipe the same will happen again" : "", ":\n  ", command, "\n");
}

}  // namespace planwright
