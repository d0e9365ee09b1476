#include <iostream>

#include "planner/cli/command.h"
#include "planner/diagnostics/utf8.h"
#include "planner/run_files/exit_status.h"
#include "planner/show/table.h"

namespace planwright {

std::vector<CliCommand> Commands() {
  return {ValidateCommand(), CompileCommand(), ShowCommand(),       DiffCommand(),      TuneCommand(),
          InitCommand(),     LaunchCommand(),  StatusCommand(),     ReportCommand(),    MeasureCommand(),
          AgentCommand(),    JobCommand(),     CheckpointCommand(), WeightsCommand(),   DataCommand(),
          ImportCommand(),   ExportCommand(),  ExplainCommand(),    CompletionCommand()};
}

std::string HelpText(const CliCommand& command) {
  std::string text = command.summary + "\n\nusage: plan " + command.name + " " + command.usage + "\n\noptions:\n";
  size_t width = 0;
  std::vector<std::pair<std::string, std::string>> lines;
  for (const Option& option : command.options) {
    std::string left = option.short_name.empty() ? option.name : option.short_name + ", " + option.name;
    if (!option.value.empty()) left += " " + option.value;
    width = std::max(width, left.size());
    lines.emplace_back(left, option.help);
  }
  for (const auto& [left, help] : lines) text += "  " + PadRight(left, width) + "  " + help + "\n";
  if (!command.details.empty()) text += "\n" + command.details;
  return text;
}

std::string OverviewText() {
  std::string text =
      "Planwright compiles a training recipe into a proven parallel plan, and runs it.\n\nusage: plan COMMAND ...\n\n";
  for (const CliCommand& command : Commands()) text += "  " + PadRight(command.name, 12) + command.summary + "\n";
  return text +
         "\nRECIPE is a recipe (.yaml) or a compiled plan (.json). Overrides follow it: batch.global_samples=64\n"
         "`plan COMMAND --help` describes one command.\n\n" +
         ExitStatusHelp();
}

int UsageError(const std::string& message) {
  std::cerr << "error: " << PrintableLines(message) << "\n";
  return kExitUsage;
}

}  // namespace planwright
