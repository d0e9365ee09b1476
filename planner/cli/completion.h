// Scripts that let bash and zsh complete `plan`. Both are written from the table of commands; the keys of overrides are
// asked of `plan completion keys RECIPE` when they are needed, because they hang on the recipe.
#pragma once

#include <string>
#include <vector>

#include "planner/cli/command.h"

namespace planwright {

std::string BashCompletion(const std::vector<CliCommand>& commands);
std::string ZshCompletion(const std::vector<CliCommand>& commands);

// How a command's options and words are completed, in the words of both scripts.
struct CompletionRow {
  std::string command, summary;
  std::vector<Option> options;  // with --help
  // one letter a word: r recipe or plan, s subject, k kinds, h shell; + for overrides behind
  std::string words;
};
std::vector<CompletionRow> CompletionRows(const std::vector<CliCommand>& commands);

// What an option's value is: "file", "dir", a list "cpu cuda", or "" where nothing can be offered.
std::string ValueChoices(const Option& option);

// "PW0001 PW0002 ..."
std::string KindNumbers();

}  // namespace planwright
