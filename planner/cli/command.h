// The commands of `plan`, one file each; main.cc finds them in the table of commands.cc.
#pragma once

#include <string>
#include <vector>

#include "planner/cli/arguments.h"

namespace planwright {

struct CliCommand {
  std::string name;
  std::string summary;           // one line
  std::string usage;             // after "plan NAME"
  std::vector<Option> options;   // besides --help, and --json where the command has data to print
  std::string details;           // paragraphs of --help; may be empty
  int (*run)(const Arguments&);  // an exit status (exit_status.h)
  // What its words are, for completion, one letter a word: r recipe or plan, s subject, k kinds of problems, h shell; +
  // overrides behind.
  std::string words;
};

CliCommand ValidateCommand();
CliCommand CompileCommand();
CliCommand ShowCommand();
CliCommand DiffCommand();
CliCommand LaunchCommand();
CliCommand ExplainCommand();
CliCommand CompletionCommand();

std::vector<CliCommand> Commands();

// What `plan show` can show.
std::vector<std::string> ShowSubjects();

std::string HelpText(const CliCommand& command);
std::string OverviewText();

// Prints "error: MESSAGE" on stderr and gives kExitUsage.
int UsageError(const std::string& message);

}  // namespace planwright
