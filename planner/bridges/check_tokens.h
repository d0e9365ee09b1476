// The token of each bridge: rows of an encoder take the places of one token id of the text.
#pragma once

#include <cstdint>
#include <optional>

#include "planner/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// The id of the data's image tokens: what the recipe writes, or the tokenizer's.
std::optional<int64_t> ImageTokenOf(const DataRecipe& data);

// A bridge's own token, or the data's image token; -1 where neither is known.
int64_t TokenOf(const BridgeRecipe& bridge, const DataRecipe& data);

// False, and located problems, for a bridge without its own token beside others (PW0306), two bridges with one token
// (PW0307), a token that the data never has, or one of the data that no bridge fills (PW0308), or that the model does
// not have (PW0601). With several encoders every encoder sees every image, and an image is, for each bridge in recipe
// order, its token as often as its encoder makes rows of the image.
bool CheckBridgeTokens(const Recipe& recipe, Diagnostics& diagnostics);

}  // namespace planwright
