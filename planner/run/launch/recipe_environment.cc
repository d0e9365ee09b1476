#include "planner/run/launch/recipe_environment.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/plan/launch_environment.h"
#include "planner/run/launch/rank_environment.h"

namespace planwright {
namespace {

// All on one line, so that bash counts the lines of the recipe from 1. A function of /etc/profile may end with any
// status, a line of the recipe may not. Where a command fails in a function such as `module`, bash leaves at once and
// names no line: so the last line that began is kept, by DEBUG, and for a subshell by ERR. Commands of a trap count as
// line 1. exec takes traps away.
constexpr char kBefore[] =
    "[ ! -r /etc/profile ] || . /etc/profile; set -e; launch_setup_line=1; "
    "trap 's=$?; echo \"launch.setup: line $launch_setup_line ended with status $s before the program of the rank\" "
    ">&2; exit $((s ? s : 2))' EXIT; "
    "trap 'launch_setup_line=$((LINENO > launch_setup_line ? LINENO : launch_setup_line))' DEBUG ERR; ";

// As ranks without such lines do (Command::outlives_sigterm).
constexpr char kThen[] = "trap '' TERM; exec \"$@\"";

Variables OwnVariables() {
  Variables variables;
  for (const std::string& variable : OwnEnvironment()) {
    const size_t equals = variable.find('=');
    if (equals != std::string::npos) variables.emplace(variable.substr(0, equals), variable.substr(equals + 1));
  }
  return variables;
}

}  // namespace

Variables VariablesOfShell() {
  constexpr std::string_view kNames[] = {"PATH", "HOME", "USER", "LANG"};
  Variables taken;
  for (const auto& [name, value] : OwnVariables()) {
    const bool ours = name.starts_with("PLANWRIGHT_") && IsLibraryVariable(name);  // no secret
    if (ours || std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames)) taken.emplace(name, value);
  }
  return taken;
}

std::vector<std::string> LibraryVariablesLeftBehind(const LaunchPlan& launch) {
  std::vector<std::string> names;
  for (const auto& [name, value] : OwnVariables()) {
    const bool named = std::any_of(launch.env.begin(), launch.env.end(),
                                   [&name](const std::string& entry) { return VariableOf(entry) == name; });
    if (!named && IsLibraryVariable(name) && !name.starts_with("PLANWRIGHT_")) names.push_back(name);
  }
  return names;
}

absl::StatusOr<Variables> VariablesOfRecipe(const LaunchPlan& launch, const Variables& passed_on) {
  Variables variables;
  std::vector<std::string> missing;
  for (const std::string& entry : launch.env) {
    const std::string name(VariableOf(entry));
    if (!IsPassedOn(entry)) {
      variables[name] = entry.substr(name.size() + 1);
    } else if (const auto known = passed_on.find(name); known != passed_on.end()) {
      variables[name] = known->second;
    } else if (const char* value = std::getenv(name.c_str())) {
      variables[name] = value;
    } else {
      missing.push_back(name);
    }
  }
  if (missing.empty()) return variables;
  return absl::InvalidArgumentError(absl::StrCat("launch.env passes on ", absl::StrJoin(missing, ", "),
                                                 ", and this shell has no such ",
                                                 missing.size() == 1 ? "variable" : "variables", "; export ",
                                                 missing.size() == 1 ? "it" : "them", ", or write NAME=VALUE"));
}

std::vector<std::string> WithSetup(const LaunchPlan& launch, std::vector<std::string> command) {
  if (launch.setup.empty()) return command;
  std::vector<std::string> whole = {
      "/bin/bash", "-c", absl::StrCat(kBefore, absl::StrJoin(launch.setup, "\n"), "\n", kThen), "launch.setup"};
  whole.insert(whole.end(), std::make_move_iterator(command.begin()), std::make_move_iterator(command.end()));
  return whole;
}

}  // namespace planwright
