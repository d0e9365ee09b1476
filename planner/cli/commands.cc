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

std::vector<Option> WithHelp(const CliCommand& command) {
  std::vector<Option> options = command.options;
  options.push_back({"--help", "-h", "", "print this help"});
  return options;
}

std::string OptionText(const Option& option) {
  std::string text = option.short_name.empty() ? option.name : option.short_name + ", " + option.name;
  if (!option.value.empty()) text += " " + option.value;
  return text;
}

int UsageError(const std::string& message) {
  std::cerr << "error: " << PrintableLines(message) << "\n";
  return kExitUsage;
}

}  // namespace planwright
