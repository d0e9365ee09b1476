// `plan validate --fix`: the edits of problems, made in the recipe's own file.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/recipe/diagnostics/diagnostic.h"

namespace planwright {

struct FixedText {
  std::string before, after;  // the text of the file; equal: nothing is to be changed
};

// The text of a recipe with the edits of its errors, in its form and with its comments. An edit is made if its value
// stands in this file, or nowhere yet, and if it ends errors and brings no other; so do all of them together, which is
// checked with the text. Edits of values in files that it extends, and of overrides, are left. `problems`: of the
// recipe with these overrides, with advice. Errors: those of reading the file, and of FormatRecipe.
absl::StatusOr<FixedText> FixRecipe(const std::string& path, const std::vector<std::string>& overrides,
                                    const std::vector<Diagnostic>& problems);

}  // namespace planwright
