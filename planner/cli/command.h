// The commands of `plan`. Each is a file command_NAME.cc; commands.cc lists them.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "planner/cli/arguments.h"

namespace planwright {

struct CliCommand {
  std::string name;
  std::string summary;  // one line
  // Does it, and returns an ExitStatus.
  std::function<int(const std::vector<Option>& rows, const Arguments& arguments)> run;
  // What its words are, for completion. One letter a word: r recipe or plan, s subject of `show`, k what `plan explain`
  // knows, h shell, m command, c what to do with a checkpoint, a with data, d folder, f file. A + at the end: overrides
  // may follow.
  std::string words = {};
  std::string usage = {};                                   // after "plan NAME"
  std::vector<Option> options = {};                         // without --help, which every command has
  std::string details = {};                                 // further paragraphs of --help
  std::vector<CommandExample> examples = {};                // besides those of options
  std::vector<std::string_view> see_also = {}, pages = {};  // other commands, and pages of docs
  bool runs = false;              // it ends with the status of a run; otherwise with 0, 1 or 2
  bool asks_for_options = false;  // options that it does not have are words: `plan explain --micro-batch-size`

  std::vector<CommandExample> all_examples() const;
};

CliCommand ValidateCommand();
CliCommand FmtCommand();
CliCommand CompileCommand();
CliCommand ShowCommand();
CliCommand DiffCommand();
CliCommand LaunchCommand();
CliCommand MeasureCommand();
CliCommand TuneCommand();
CliCommand InitCommand();
CliCommand AgentCommand();
CliCommand JobCommand();
CliCommand StatusCommand();
CliCommand ReportCommand();
CliCommand EvaluateCommand();
CliCommand CheckpointCommand();
CliCommand WeightsCommand();
CliCommand DataCommand();
CliCommand ImportCommand();
CliCommand ExportCommand();
CliCommand ExplainCommand();
CliCommand HelpCommand();
CliCommand CompletionCommand();

std::vector<CliCommand> Commands();

// The subjects of `plan show`.
std::vector<std::string> ShowSubjects();

// The options of a command with --help, which all have.
std::vector<Option> WithHelp(const CliCommand& command);

// Prints "error: MESSAGE" on stderr and returns kExitUsage.
int UsageError(const std::string& message);
int UsageError(const absl::Status& status);

// CliCommand::run of a command whose options are a struct: fills it, and calls `body`.
template <typename Options>
auto Runs(int (*body)(const Options&)) {
  return [body](const std::vector<Option>& rows, const Arguments& arguments) {
    Options options;
    const absl::Status filled = FillOptions(arguments, rows, options);
    return filled.ok() ? body(options) : UsageError(filled);
  };
}

}  // namespace planwright
