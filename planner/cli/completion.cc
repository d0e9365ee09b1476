#include "planner/cli/completion.h"

#include <algorithm>

#include "planner/diagnostics/diagnostic.h"

namespace planwright {

std::vector<CompletionRow> CompletionRows(const std::vector<CliCommand>& commands) {
  std::vector<CompletionRow> rows;
  for (const CliCommand& command : commands) {
    CompletionRow row{command.name, command.summary, command.options, command.words};
    row.options.push_back({"--help", "-h", "", "print help"});
    rows.push_back(std::move(row));
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

std::string KindNumbers() {
  std::string text;
#define KIND(id, number, summary) text += (text.empty() ? "" : " ") + std::string(number);
#include "planner/diagnostics/diagnostic_kind.def"
#undef KIND
  return text;
}

}  // namespace planwright
