// The language model with what no kind of this program uses yet, so that tests can plan it and train it. It has the
// name of the language model, and recipes are read as those of that model.
#pragma once

#include <string>

namespace planwright::testing {

// The text of a kind of this program ("radio_vit") up to its dialects.
std::string StatementText(const std::string& kind);

// That of hybrid_lm with
//   - experts whose first matrix is two parameters of unequal sizes, joined in one storage,
//   - a head that is the embedding,
//   - rows of each encoder that pass an operation before they are put among the tokens.
std::string ToyKind();

// That of hybrid_lm with experts as decoders have them: a softmax router without a bias, and gated experts.
std::string GatedExpertsKind();

}  // namespace planwright::testing
