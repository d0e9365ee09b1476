// `plan validate --fix`: the edits of problems, made in the recipe's own file.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/recipe/diagnostics/diagnostic.h"

namespace planwright {

// An error that is left, and why.
struct LeftError {
  DiagnosticKind kind{};
  std::string message;  // without numbers
  std::string why;
};

struct FixedText {
  std::string before, after;  // the text of the file; equal: nothing is to be changed
  std::vector<LeftError> left = {};
};

// The text of a recipe with the edits of its errors, in its form and with its comments. An edit is made if it says what
// the file says already (Diagnostic::restates), and if it ends errors and brings no other. What is read is the text
// with all edits so far, so that a key of this file may be laid over one of a file that it extends. Edits of values
// that stand in such a file, and of overrides, are left. `problems`: of the recipe with these overrides, with advice.
// Errors: those of reading the file, and of FormatRecipe.
absl::StatusOr<FixedText> FixRecipe(const std::string& path, const std::vector<std::string>& overrides,
                                    const std::vector<Diagnostic>& problems);

// Adds to each error that is left a note that says why.
void TellWhyLeft(const std::vector<LeftError>& left, Diagnostics& problems);

}  // namespace planwright
