// `plan help` and `plan COMMAND --help`: the table of commands as text for a terminal.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/files/exit_status.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/text.h"
#include "planner/cli/manual.h"
#include "planner/plan/plan.h"

namespace planwright {
namespace {

constexpr size_t kWidth = 118;

// Two columns; what does not fit beside the first one continues below.
std::string Columns(const std::vector<std::pair<std::string, std::string>>& lines) {
  size_t width = 0;
  for (const auto& [left, right] : lines) width = std::max(width, std::min<size_t>(left.size(), 40));
  std::string text;
  for (const auto& [left, right] : lines) {
    const bool apart = left.size() > width;
    if (apart) Append(text, "  ", left, "\n");
    Append(text, "  ", Wrapped(Cat(PadRight(apart ? "" : left, width), "  ", right), kWidth - 2, width + 4), "\n");
  }
  return text;
}

std::string StatusText(const CliCommand& command) {
  std::vector<std::pair<std::string, std::string>> lines;
  for (const ExitStatusRow& row : ExitStatuses()) {
    if (command.runs || row.number < kExitPeerLost) lines.emplace_back(absl::StrCat(row.number), row.meaning);
  }
  if (command.runs) lines.emplace_back("128+N", "interrupted by signal N");
  return Columns(lines);
}

}  // namespace

std::string HelpText(const CliCommand& command) {
  std::vector<std::pair<std::string, std::string>> options;
  for (const Option& option : WithHelp(command)) options.emplace_back(option.text(), option.help);
  const std::string usage = Wrapped(Cat("usage: plan ", command.name, " ", command.usage), kWidth, 4);
  std::string text = Cat(command.summary, "\n\n", usage, "\n\noptions:\n", Columns(options),
                         command.details.empty() ? "" : "\n", command.details, "\nexamples:\n");
  for (const CommandExample& example : command.all_examples())
    Append(text, "  ", example.command, "\n      ", example.does, "\n");
  return Cat(text, "\nexit status:\n", StatusText(command), "\nsee also: plan ",
             absl::StrJoin(command.see_also.begin(), command.see_also.end(), ", plan ",
                           [](std::string* out, std::string_view name) { out->append(name); }),
             "; ",
             absl::StrJoin(command.pages.begin(), command.pages.end(), ", ",
                           [](std::string* out, std::string_view page) { out->append(page); }),
             "\n");
}

std::string OverviewText() {
  std::string text =
      "Planwright compiles a training recipe into a proven parallel plan, and runs it.\n\nusage: plan COMMAND ...\n\n";
  for (const CliCommand& command : Commands()) text += "  " + PadRight(command.name, 12) + command.summary + "\n";
  return text +
         "\nRECIPE is a recipe (.yaml) or a compiled plan (.json). Overrides follow it: batch.global_samples=64\n"
         "`plan help COMMAND` describes one command, and `plan explain WORD` a key, a term or a message.\n\n" +
         ExitStatusHelp();
}

}  // namespace planwright
