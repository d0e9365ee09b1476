#include <iostream>

#include "planner/base/files/exit_status.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/command.h"

namespace planwright {

std::vector<CliCommand> Commands() {
  return {ValidateCommand(), FmtCommand(),       CompileCommand(), ShowCommand(),   DiffCommand(),
          TuneCommand(),     InitCommand(),      LaunchCommand(),  StatusCommand(), ReportCommand(),
          EvaluateCommand(), MeasureCommand(),   AgentCommand(),   JobCommand(),    CheckpointCommand(),
          WeightsCommand(),  DataCommand(),      ImportCommand(),  ExportCommand(), ExplainCommand(),
          HelpCommand(),     CompletionCommand()};
}

std::vector<CommandExample> CliCommand::all_examples() const {
  std::vector<CommandExample> all = examples;
  for (const Option& option : options) {
    if (option.example) all.push_back(*option.example);
  }
  return all;
}

std::vector<Option> WithHelp(const CliCommand& command) {
  std::vector<Option> options = command.options;
  options.emplace_back("-h, --help", "print this help");
  return options;
}

int UsageError(const std::string& message) {
  std::cerr << "error: " << PrintableLines(message) << "\n";
  return kExitUsage;
}

int UsageError(const absl::Status& status) { return UsageError(std::string(status.message())); }

}  // namespace planwright
