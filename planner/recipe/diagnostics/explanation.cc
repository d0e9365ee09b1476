#include "planner/recipe/diagnostics/explanation.h"

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "planner/base/text/bug.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/recipe/diagnostics/explanations/explanations.h"

namespace planwright {
namespace {

constexpr size_t kTextWidth = 100;

// `text` in lines of at most kTextWidth columns. No line starts with `-` or `+`, which Markdown would take for a list.
std::string Wrapped(std::string_view text) {
  std::string out;
  size_t column = 0;
  for (const std::string& word :
       std::vector<std::string>(absl::StrSplit(std::string(text), absl::ByAnyChar(" \n"), absl::SkipEmpty()))) {
    const bool is_bullet = word == "-" || word == "+";
    if (column + word.size() + 1 > kTextWidth && !is_bullet) {
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

// Lines with `indent` in front. Examples may contain control characters on purpose (PW0004): they are escaped, so that
// readers see them and a terminal does not obey them.
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
  return Cat("This is a lint: a warning. In the recipe, `lints: {", KindNumber(kind),
             ": error}` makes it an error and `off` silences it.");
}

constexpr char kPageHead[] = R"(# Diagnostics

All problems that `plan validate` can report. This page is made by `plan explain --markdown` from the table of kinds.

A recipe with an error does not compile. A lint is a warning: the recipe still compiles. The recipe's `lints` can make a
lint an error or silence it, as in `lints: {PW0407: off, PW0210: error}`.

Each example is a whole file `recipe.yaml` in the folder [recipes/](../recipes). Tests compile all examples: the wrong
one causes only this diagnostic, and the right one causes none.

| number | name | | meaning |
|---|---|---|---|
)";

// The headings of the page: kinds whose number starts with `prefix`.
struct Chapter {
  std::string_view prefix, title;
};
constexpr Chapter kChapters[] = {
    {"PW00", "Files"},        {"PW01", "Keys and values"},  {"PW02", "Topology"},
    {"PW03", "Bridges"},      {"PW04", "Batch and budget"}, {"PW05", "Models"},
    {"PW06", "Data"},         {"PW07", "Memory"},           {"PW08", "Verification of the plan"},
    {"PW09", "Not built yet"}};

}  // namespace

const Explanation& ExplanationOf(DiagnosticKind kind) {
  for (const auto& explanations :
       {FileExplanations(), RecipeExplanations(), TopologyExplanations(), BridgeExplanations(), BudgetExplanations(),
        ModelExplanations(), DataExplanations(), PlanExplanations()}) {
    for (const Explanation& explanation : explanations) {
      if (explanation.kind == kind) return explanation;  // a linear search: only a person waits for it
    }
  }
  // A test calls this for every kind.
  Bug(Cat(KindNumber(kind), " has no explanation: add one to planner/recipe/diagnostics/explanations"));
}

std::string ExampleText(std::string_view example) {
  // An example with its own `extends` does not use the base recipe.
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
                         Wrapped(explanation.meaning));
  if (IsLint(kind)) Append(text, "\n", HowToChange(kind), "\n");
  if (!explanation.wrong.empty()) {
    // The language of the code block, for highlighting.
    const std::string fence = IsCommand(explanation.wrong) ? "```sh\n" : "```yaml\n";
    Append(text, "\nWrong:\n\n", fence, Indented(ExampleText(explanation.wrong), ""), "```\n\nRight:\n\n", fence,
           Indented(ExampleText(explanation.right), ""), "```\n");
  }
  return Cat(text, "\n", Wrapped(explanation.mend));
}

std::string DiagnosticsPage() {
  std::string page = kPageHead;
  for (DiagnosticKind kind : AllKinds()) {
    const std::string number(KindNumber(kind));
    Append(page, "| [", number, "](#", absl::AsciiStrToLower(number), ") | ", KindName(kind), " | ",
           IsLint(kind) ? "lint" : "error", " | ", KindSummary(kind), " |\n");
  }
  for (const Chapter& chapter : kChapters) {
    Append(page, "\n## ", chapter.title, "\n");
    for (DiagnosticKind kind : AllKinds()) {
      if (KindNumber(kind).starts_with(chapter.prefix)) Append(page, "\n", ExplanationMarkdown(kind));
    }
  }
  return page;
}

}  // namespace planwright
