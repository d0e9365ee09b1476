// Man pages: the same table of commands as input of man (roff with the macros of man(7)).
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "planner/base/files/exit_status.h"
#include "planner/base/text/text.h"
#include "planner/cli/manual.h"
#include "planner/plan/plan.h"

namespace planwright {
namespace {

// Text that roff prints as it is: no escapes, no requests at the start of a line, and dashes that can be copied. A line
// may end behind a |, as lists of choices are long.
std::string Roff(std::string_view text) {
  std::string out;
  bool begins = true;
  for (const char c : text) {
    if (begins && (c == '.' || c == '\'')) out += "\\&";
    begins = c == '\n';
    switch (c) {
      case '\\': out += "\\e"; break;
      case '-': out += "\\-"; break;
      case '\'': out += "\\(aq"; break;
      case '`': out += "\\(ga"; break;
      case '^': out += "\\(ha"; break;
      case '~': out += "\\(ti"; break;
      case '|': out += "|\\:"; break;
      default: out += c;
    }
  }
  return out;
}

std::string Bold(std::string_view text) { return Cat("\\fB", Roff(text), "\\fR"); }

constexpr std::string_view kManPageStart = ".\\\" `plan help --man DIR` writes this page.\n";

std::string Head(const std::string& name, std::string_view summary) {
  return Cat(kManPageStart, ".TH ", absl::AsciiStrToUpper(Roff(name)), " 1 \"\" \"plan ", kToolVersion,
             "\" \"Planwright\"\n.SH NAME\n", Roff(name), " \\- ", Roff(summary), "\n");
}

// Lines that begin with a space are an item and what is said of it, two spaces apart; one with a deeper begin goes on
// with that. Man fills all text to the width of its reader.
std::string Details(const std::string& details) {
  std::string text;
  bool items = false;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(details, '\n', absl::SkipEmpty()))) {
    const std::string words(absl::StripAsciiWhitespace(line));
    const bool item = line.starts_with("  ") && !line.starts_with("   ");
    if (item) {
      const size_t gap = words.find("  ");
      Append(text, gap == std::string::npos ? ".PP\n" : ".TP\n", Roff(words.substr(0, gap)), "\n");
      if (gap != std::string::npos)
        Append(text, Roff(std::string(absl::StripAsciiWhitespace(words.substr(gap)))), "\n");
    } else {
      if (items && !line.starts_with(' ')) text += ".PP\n";
      Append(text, Roff(words), "\n");
    }
    items = line.starts_with(' ');
  }
  return text;
}

std::string Statuses(bool runs) {
  std::string text = ".SH EXIT STATUS\n";
  for (const ExitStatusRow& row : ExitStatuses()) {
    if (runs || row.number < kExitPeerLost)
      Append(text, ".TP\n", Bold(absl::StrCat(row.number)), "\n", Roff(row.meaning), "\n");
  }
  return text + (runs ? Cat(".TP\n", Bold("128+N"), "\ninterrupted by signal N\n") : "");
}

}  // namespace

bool BeginsManPage(std::string_view head) { return head.starts_with(kManPageStart); }

std::string ManPage(const CliCommand& command) {
  std::string text = Cat(Head("plan-" + command.name, command.summary), ".SH SYNOPSIS\n", Bold("plan " + command.name),
                         " ", Roff(command.usage), "\n");
  if (!command.details.empty()) Append(text, ".SH DESCRIPTION\n", Details(command.details));
  text += ".SH OPTIONS\n";
  for (const Option& option : WithHelp(command))
    Append(text, ".TP\n", Bold(option.text()), "\n", Roff(option.help), "\n");
  text += ".SH EXAMPLES\n";
  for (const CommandExample& example : command.all_examples())
    Append(text, ".TP\n", Bold(example.command), "\n", Roff(example.does), "\n");
  text += Statuses(command.runs);
  text += ".SH SEE ALSO\n";
  Append(text, Bold("plan"), "(1)");
  for (const std::string_view name : command.see_also) Append(text, ",\n", Bold(Cat("plan-", name)), "(1)");
  for (const std::string_view page : command.pages) Append(text, ",\n", Roff(page));
  return text + "\n";
}

std::string ManOverview() {
  std::string text = Cat(Head("plan", "compiles a training recipe into a proven parallel plan, and runs it"),
                         ".SH SYNOPSIS\n", Bold("plan"), " COMMAND ...\n.SH DESCRIPTION\n",
                         Roff("RECIPE is a recipe (.yaml) or a compiled plan (.json). Overrides follow it: "
                              "batch.global_samples=64. Each command has a page of its own, such as plan-launch.\n"),
                         ".SH COMMANDS\n");
  for (const CliCommand& command : Commands())
    Append(text, ".TP\n", Bold(command.name), "\n", Roff(command.summary), "\n");
  text += Statuses(true);
  text += ".SH SEE ALSO\n";
  std::string separator;
  for (const CliCommand& command : Commands()) {
    Append(text, separator, Bold("plan-" + command.name), "(1)");
    separator = ",\n";
  }
  return text + "\n";
}

}  // namespace planwright
