// The commands of `plan`. Each is a file command_NAME.cc; commands.cc lists them.
#pragma once

#include <string>
#include <vector>

#include "planner/cli/arguments.h"

namespace planwright {

struct CliCommand {
  std::string name;
  std::string summary;           // one line
  std::string usage;             // after "plan NAME"
  std::vector<Option> options;   // without --help, which every command has
  std::string details;           // further paragraphs of --help; may be empty
  int (*run)(const Arguments&);  // returns an ExitStatus
  // What its words are, for completion. One letter a word: r recipe or plan, s subject of `show`, k what `plan explain`
  // knows, h shell, m command, c what to do with a checkpoint, a with data, d folder, f file. A + at the end: overrides
  // may follow.
  std::string words;
  bool asks_for_options = false;  // options that it does not have are words: `plan explain --micro-batch-size`
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

// The options of a command with --help, which all have; and how one is written: "-o, --output FILE".
std::vector<Option> WithHelp(const CliCommand& command);
std::string OptionText(const Option& option);

// Prints "error: MESSAGE" on stderr and returns kExitUsage.
int UsageError(const std::string& message);

}  // namespace planwright
