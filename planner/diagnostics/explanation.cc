#include "planner/diagnostics/explanation.h"

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "planner/diagnostics/bug.h"
#include "planner/diagnostics/explanations/rooms.h"
#include "planner/diagnostics/text.h"
#include "planner/diagnostics/utf8.h"

namespace planwright {
namespace {

constexpr size_t kTextWidth = 100;

// Paragraphs of `text` in lines of at most kTextWidth columns.
std::string Wrapped(std::string_view text) {
  std::string out;
  size_t column = 0;
  for (const std::string& word :
       std::vector<std::string>(absl::StrSplit(std::string(text), absl::ByAnyChar(" \n"), absl::SkipEmpty()))) {
    if (column + word.size() + 1 > kTextWidth) {
      out += '\n';
      column = 0;
    } else if (column > 0) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out + "\n";
}

std::string OnOneLine(std::string_view text) {
  std::string out;
  for (const std::string& word :
       std::vector<std::string>(absl::StrSplit(std::string(text), absl::ByAnyChar(" \n"), absl::SkipEmpty()))) {
    Append(out, out.empty() ? "" : " ", word);
  }
  return out;
}

// Lines with what a terminal would hide written out.
std::string Indented(std::string_view text, std::string_view indent) {
  std::string out;
  for (const std::string& line : std::vector<std::string>(
           absl::StrSplit(std::string(absl::StripTrailingAsciiWhitespace(std::string(text))), '\n'))) {
    Append(out, line.empty() ? "" : indent, Printable(line), "\n");
  }
  return out;
}

bool IsCommand(std::string_view example) { return example.starts_with("$ "); }

std::string HowToChange(DiagnosticKind kind) {
  return Cat("A lint: a warning, which `lints: {", KindNumber(kind),
             ": error}` in the recipe makes an error and `off` silences.");
}

constexpr char kPageHead[] = R"(# Diagnostics

What `plan validate` may say of a recipe, made by `plan explain --markdown` from the table of kinds. An error keeps the recipe from compiling. A lint
is a warning: the recipe still compiles, and its `lints` can make it an error or silence it, as in `lints: {PW0407: off, PW0210: error}`.

Each example is a whole file `recipe.yaml` beside those of [recipes/](../recipes): tests compile them all, and prove that the wrong one gives this
diagnostic and nothing else, and the right one nothing at all.

| number | name | | says |
|---|---|---|---|
)";

struct Room {
  std::string_view hundred, title;
};
constexpr Room kRooms[] = {{"PW00", "Files"},   {"PW01", "Keys and values"},       {"PW02", "Topology"},
                           {"PW03", "Bridges"}, {"PW04", "Batch and budget"},      {"PW05", "Models"},
                           {"PW06", "Data"},    {"PW08", "The proof of the plan"}, {"PW09", "Not built yet"}};

}  // namespace

const Explanation& ExplanationOf(DiagnosticKind kind) {
  for (const auto& room : {FileExplanations(), RecipeExplanations(), TopologyExplanations(), BridgeExplanations(),
                           BudgetExplanations(), ModelExplanations(), DataExplanations(), PlanExplanations()}) {
    for (const Explanation& explanation : room) {
      if (explanation.kind == kind) return explanation;
    }
  }
  Bug(Cat(KindNumber(kind), " has no explanation: add one to planner/diagnostics/explanations"));
}

std::string ExampleText(std::string_view example) {
  if (IsCommand(example) || example.find("extends:") != std::string_view::npos) return std::string(example);
  return Cat("extends: [", kExampleBase, "]\n", example);
}

std::string ExplanationText(DiagnosticKind kind) {
  const Explanation& explanation = ExplanationOf(kind);
  std::string text =
      Cat(KindNumber(kind), " ", KindName(kind), ": ", KindSummary(kind), "\n\n", Wrapped(explanation.meaning));
  if (IsLint(kind)) text += Wrapped(HowToChange(kind));
  if (!explanation.wrong.empty()) {
    Append(text, "\nWrong:\n\n", Indented(ExampleText(explanation.wrong), "    "), "\nRight:\n\n",
           Indented(ExampleText(explanation.right), "    "));
  }
  return Cat(text, "\n", Wrapped(explanation.mend));
}

std::string ExplanationMarkdown(DiagnosticKind kind) {
  const Explanation& explanation = ExplanationOf(kind);
  std::string text = Cat("### ", KindNumber(kind), "\n\n**", KindName(kind), "**: ", KindSummary(kind), "\n\n",
                         OnOneLine(explanation.meaning), "\n");
  if (IsLint(kind)) Append(text, "\n", HowToChange(kind), "\n");
  if (!explanation.wrong.empty()) {
    const std::string fence = IsCommand(explanation.wrong) ? "```sh\n" : "```yaml\n";
    Append(text, "\nWrong:\n\n", fence, Indented(ExampleText(explanation.wrong), ""), "```\n\nRight:\n\n", fence,
           Indented(ExampleText(explanation.right), ""), "```\n");
  }
  return Cat(text, "\n", OnOneLine(explanation.mend), "\n");
}

std::string DiagnosticsPage() {
  std::string page = kPageHead;
  for (DiagnosticKind kind : AllKinds()) {
    const std::string number(KindNumber(kind));
    Append(page, "| [", number, "](#", absl::AsciiStrToLower(number), ") | ", KindName(kind), " | ",
           IsLint(kind) ? "lint" : "error", " | ", KindSummary(kind), " |\n");
  }
  for (const Room& room : kRooms) {
    Append(page, "\n## ", room.title, "\n");
    for (DiagnosticKind kind : AllKinds()) {
      if (KindNumber(kind).starts_with(room.hundred)) Append(page, "\n", ExplanationMarkdown(kind));
    }
  }
  return page;
}

}  // namespace planwright
