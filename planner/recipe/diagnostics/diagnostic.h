// Problems of a recipe, for its author: the kind, the location, what was found and what is expected, and how to correct
// it. Rooms add them to a Diagnostics; the command line prints them (render.h).
//
// Wording: lower case, no full stop at the end. `message` names the key or module first, then the value that was found
// and the value that is expected. `help` says what to change; empty if the message already says it.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/base/text/location.h"

namespace planwright {

enum class Severity { kError, kWarning };

enum class DiagnosticKind {
#define KIND(id, number, summary) k##id,
#include "planner/recipe/diagnostics/diagnostic_kind.def"
#undef KIND
};
std::string_view KindNumber(DiagnosticKind kind);   // "PW0203"
std::string_view KindName(DiagnosticKind kind);     // "GridDoesNotFit"
std::string_view KindSummary(DiagnosticKind kind);  // one line, for lists
bool IsLint(DiagnosticKind kind);                   // a warning, unless the recipe's `lints` change its level
std::span<const DiagnosticKind> AllKinds();         // in the order of diagnostic_kind.def
std::optional<DiagnosticKind> FindKind(std::string_view number_or_name);

// The level of a lint, which the recipe's `lints` can set. Default: kWarn.
enum class LintLevel { kError, kWarn, kOff };

// A second location that belongs to a problem: "module language was given 24 ranks here".
struct Note {
  Location where;
  std::string message;
};

// One change of a recipe that a machine can apply, as the override `path=value` or as the removal of a key.
struct Edit {
  std::string path;   // "modules.language.parallel.tp", "bridges[0].token"
  std::string value;  // as YAML on one line; empty: the key is removed
};

struct Diagnostic {
  DiagnosticKind kind{};
  Severity severity = Severity::kError;
  std::string message;
  Location where;
  std::string help;
  std::vector<Note> notes = {};
  std::vector<Edit> edits = {};  // the first suggestion of the help, to be applied together; none: it is only in words
  // Whether the edits say what the recipe says in the right words, or what alone is possible. Others choose a number
  // for the author, or drop what is said: they are suggestions, which nobody makes unasked (docs/help.md#fixes).
  bool restates = false;
};

// What stays of a message when a change of the recipe moves its numbers: whether a problem is still the same one.
std::string MessageWithoutNumbers(const Diagnostic& problem);

// Collects the problems of one run, so that all of them are shown together and not only the first one.
class Diagnostics {
 public:
  // Adds a problem and returns it, so that the caller can add notes. The reference is valid until the next call.
  Diagnostic& Error(DiagnosticKind kind, const Location& where, std::string message, std::string help = "");
  // The same for a lint, at its current level. If the level is kOff, nothing is added, and the caller gets a dummy.
  Diagnostic& Warning(DiagnosticKind lint, const Location& where, std::string message, std::string help = "");
  // Sets the level for later calls of Warning. `where`: the location in `lints`, shown if the lint becomes an error.
  void SetLevel(DiagnosticKind lint, LintLevel level, const Location& where);

  void Add(Diagnostic diagnostic) { list_.push_back(std::move(diagnostic)); }
  // Puts these problems in place of those that were found.
  void Replace(std::vector<Diagnostic> problems) { list_ = std::move(problems); }

  bool has_errors() const;
  bool empty() const { return list_.empty(); }
  const std::vector<Diagnostic>& as_found() const { return list_; }  // in the order of adding
  // Sorted by file (in the order in which files are first mentioned), line and column. Problems at the same location
  // keep the order of adding.
  std::vector<Diagnostic> sorted() const;

 private:
  struct Level {
    LintLevel level;
    Location where;
  };

  std::vector<Diagnostic> list_;
  std::map<DiagnosticKind, Level> levels_;
  Diagnostic silenced_;  // what Warning returns at level kOff
};

}  // namespace planwright
