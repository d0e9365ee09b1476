// The program `plan`: finds the command, reads its options, runs it.
#include <iostream>
#include <new>

#include "planner/base/files/exit_status.h"
#include "planner/base/process/inherited.h"
#include "planner/base/text/near_name.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/command.h"
#include "planner/cli/completion.h"
#include "planner/cli/manual.h"
#include "planner/cli/words_of_others.h"
#include "planner/plan/plan.h"
#include "planner/state/checkpoint/own_paths.h"

namespace planwright {
namespace {

int UnknownCommand(const std::string& name, const std::vector<CliCommand>& commands) {
  std::vector<std::string> names;
  for (const CliCommand& command : commands) names.push_back(command.name);
  const std::string instead = CommandOfOthers(name);
  if (!instead.empty()) return UsageError("no command `" + name + "`; " + instead);
  return UsageError("no command `" + name + "`; " + NearNameHelp(name, names, "`plan --help` lists them"));
}

int RunCommand(const CliCommand& command, const std::vector<std::string>& arguments) {
  const absl::StatusOr<Arguments> parsed =
      ParseArguments(arguments, WithHelp(command), command.asks_for_options, command.words.ends_with('+'));
  if (!parsed.ok())
    return UsageError(std::string(parsed.status().message()) + "\nhelp: `plan " + command.name +
                      " --help` lists the options");
  if (parsed->has("--help")) {
    std::cout << HelpText(command);
    return kExitSuccess;
  }
  for (const Option& option : command.options) {
    if (!option.writes || !parsed->has(option.name)) continue;
    const std::string& path = parsed->given.at(option.name);
    if (path.empty() || path == "-") continue;
    const absl::Status outside = CheckOutsideOfRuns(path);
    if (!outside.ok()) return UsageError(option.name + ": " + Printable(std::string(outside.message())));
  }
  return command.run(command.options, *parsed);
}

int Run(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    std::cerr << OverviewText();
    return kExitUsage;
  }
  const std::string& name = arguments[0];
  if (name == "--help" || name == "-h") {
    std::cout << OverviewText();
    return kExitSuccess;
  }
  if (name == "--version") {
    std::cout << "plan " << kToolVersion << ", plan format " << kPlanFormatVersion << "\n";
    return kExitSuccess;
  }
  if (name == "complete") return PrintCompletions({arguments.begin() + 1, arguments.end()});
  const std::vector<CliCommand> commands = Commands();
  for (const CliCommand& command : commands) {
    if (command.name == name) return RunCommand(command, {arguments.begin() + 1, arguments.end()});
  }
  return UnknownCommand(name, commands);
}

}  // namespace
}  // namespace planwright

int main(int argc, char** argv) {
  planwright::SettleInherited();
  int status = planwright::kExitUsage;
  try {
    status = planwright::Run({argv + 1, argv + argc});
  } catch (const std::bad_alloc&) {
    std::cerr << "error: not enough memory\n";
  }
  std::cout.flush();
  // A full disk, or a reader that closed the pipe. Scripts must not take a cut output for a result.
  // How a run ended matters more.
  if (!std::cout && (status == planwright::kExitSuccess || status == planwright::kExitInvalid)) {
    std::cerr << "error: cannot write the output\n";
    status = planwright::kExitUsage;
  }
  return status;
}
