// What each kind of diagnostic means, with a wrong and a right example: the texts of `plan explain` and of the page
// docs/diagnostics.md. The texts are in explanations/, one file for each part of the planner. Tests compile every
// example: the wrong one must cause exactly this diagnostic, the right one none.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "planner/recipe/diagnostics/diagnostic.h"

namespace planwright {

// The recipe that examples extend, unless they have an `extends` of their own.
inline constexpr std::string_view kExampleBase = "nemotron_moe_vlm_20l_mock_8r.yaml";

struct Explanation {
  DiagnosticKind kind;
  std::string_view meaning;  // one paragraph: what the problem is, and why it matters
  // The texts of two recipes: `wrong` causes only this diagnostic, `right` causes none. Both extend kExampleBase. A
  // text that starts with "$ " is a command instead. Both empty: no recipe file and no command can cause this kind.
  std::string_view wrong, right;
  std::string_view mend;  // one paragraph: how to correct the recipe
};

const Explanation& ExplanationOf(DiagnosticKind kind);

// An example as a whole recipe file, with its `extends`; a command is returned as it is.
std::string ExampleText(std::string_view example);

// The explanation of one kind for a terminal, and as a section of the page. Both end with a line break.
std::string ExplanationText(DiagnosticKind kind);
std::string ExplanationMarkdown(DiagnosticKind kind);

// The whole page docs/diagnostics.md, in Markdown.
std::string DiagnosticsPage();

}  // namespace planwright
