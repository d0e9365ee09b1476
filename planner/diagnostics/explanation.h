// What each kind of diagnostic means, by example: the texts of `plan explain` and docs/diagnostics.md. They stand in
// explanations/, one file a room of the table; tests prove that every example gives what it says.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "planner/diagnostics/diagnostic.h"

namespace planwright {

// The recipe under every example.
inline constexpr std::string_view kExampleBase = "nemotron_moe_vlm_20l_mock_8r.yaml";

struct Explanation {
  DiagnosticKind kind;
  std::string_view meaning;  // one paragraph: what is not so, and why it matters
  // A recipe.yaml that gives this kind alone, and one that gives nothing: laid over the base recipe, which stands
  // beside it, unless they have an `extends` of their own. A text that starts with "$ " is a command instead. Empty: no
  // recipe and no command gives this kind.
  std::string_view wrong, right;
  std::string_view mend;  // one paragraph
};

const Explanation& ExplanationOf(DiagnosticKind kind);

// The example as a whole file, or the command.
std::string ExampleText(std::string_view example);

// For a terminal, and as a section of the page; both end with a line break.
std::string ExplanationText(DiagnosticKind kind);
std::string ExplanationMarkdown(DiagnosticKind kind);

// The page docs/diagnostics.md.
std::string DiagnosticsPage();

}  // namespace planwright
