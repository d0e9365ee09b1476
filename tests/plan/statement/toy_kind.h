// The language model with what no kind of this program uses yet, so that tests can plan it and train it. It has the
// name of the language model, and recipes are read as those of that model.
#pragma once

#include <string>

namespace planwright::testing {

// The text of hybrid_lm.model with
//   - experts whose first matrix is two parameters of unequal sizes, joined in one storage.
std::string ToyKind();

}  // namespace planwright::testing
