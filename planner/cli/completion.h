// Scripts for completion in bash and zsh. Both are made from the table of commands. The keys of overrides depend on the
// recipe, so the scripts call `plan completion keys RECIPE` for them, and `plan completion words` for what `plan
// explain` knows.
#pragma once

#include <string>
#include <vector>

#include "planner/cli/command.h"

namespace planwright {

std::string BashCompletion(const std::vector<CliCommand>& commands);
std::string ZshCompletion(const std::vector<CliCommand>& commands);

// What both scripts need of a command.
struct CompletionRow {
  std::string command, summary;
  std::vector<Option> options;  // with --help
  std::string words;            // as CliCommand::words
};
std::vector<CompletionRow> CompletionRows(const std::vector<CliCommand>& commands);

// How to complete an option's value: "file", "dir", a list such as "cpu cuda", or "" for nothing.
std::string ValueChoices(const Option& option);

}  // namespace planwright
