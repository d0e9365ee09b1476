// Problems of a recipe, for its author: what kind, where, what was expected and found, how to mend it.
// Rooms add to a Diagnostics; the command line renders them (render.h). Wording: lower case, no full stop in `message`;
// `help` says what to change.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/diagnostics/location.h"

namespace planwright {

enum class Severity { kError, kWarning };

enum class DiagnosticKind {
#define KIND(id, number, summary) k##id,
#include "planner/diagnostics/diagnostic_kind.def"
#undef KIND
};
std::string_view KindNumber(DiagnosticKind kind);   // "PW0203"
std::string_view KindName(DiagnosticKind kind);     // "GridDoesNotFit"
std::string_view KindSummary(DiagnosticKind kind);  // one line, for lists
bool IsLint(DiagnosticKind kind);                   // a warning unless the recipe's `lints` say otherwise
std::span<const DiagnosticKind> AllKinds();         // in the table's order
std::optional<DiagnosticKind> FindKind(std::string_view number_or_name);

// What a recipe's `lints` make of a lint.
enum class LintLevel { kError, kWarn, kOff };

// Another place that matters: "module language was given 24 ranks here".
struct Note {
  Location where;
  std::string message;
};

struct Diagnostic {
  DiagnosticKind kind{};
  Severity severity = Severity::kError;
  std::string message;
  Location where;
  std::string help;
  std::vector<Note> notes;
};

// Gathers problems; all independent ones of a run are shown, causes first (order of adding is kept within a file
// position).
class Diagnostics {
 public:
  Diagnostic& Error(DiagnosticKind kind, const Location& where, std::string message, std::string help = "");
  // Of a lint. An error, or not shown at all, if the recipe says so; what is returned may then be filled in vain.
  Diagnostic& Warning(DiagnosticKind lint, const Location& where, std::string message, std::string help = "");
  // For warnings from now on. `where`: the line that asks for it.
  void SetLevel(DiagnosticKind lint, LintLevel level, const Location& where);

  void Add(Diagnostic diagnostic) { list_.push_back(std::move(diagnostic)); }

  bool has_errors() const;
  bool empty() const { return list_.empty(); }
  const std::vector<Diagnostic>& as_found() const { return list_; }
  // Sorted by file in order of first mention, then line and column.
  std::vector<Diagnostic> sorted() const;

 private:
  struct Level {
    LintLevel level;
    Location where;
  };

  std::vector<Diagnostic> list_;
  std::map<DiagnosticKind, Level> levels_;
  Diagnostic silenced_;
};

}  // namespace planwright
