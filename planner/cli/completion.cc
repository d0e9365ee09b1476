#include "planner/cli/completion.h"

#include <algorithm>

namespace planwright {

std::vector<CompletionRow> CompletionRows(const std::vector<CliCommand>& commands) {
  std::vector<CompletionRow> rows;
  for (const CliCommand& command : commands) {
    rows.push_back({command.name, command.summary, WithHelp(command), command.words});
  }
  return rows;
}

std::string ValueChoices(const Option& option) {
  if (option.value == "FILE") return "file";
  if (option.value == "DIR") return "dir";
  if (option.value.find('|') == std::string::npos) return "";
  std::string choices = option.value;
  std::replace(choices.begin(), choices.end(), '|', ' ');
  return choices;
}

}  // namespace planwright
