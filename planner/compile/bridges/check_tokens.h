// The token of each bridge: rows of an encoder replace the embeddings of one token id of the text.
#pragma once

#include <cstdint>

#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// A bridge's own token, or the image token of the data (the recipe's, or the tokenizer's); -1 where neither is known.
int64_t TokenOf(const BridgeRecipe& bridge, const DataRecipe& data);

// False, and located problems: a bridge without its own token beside others (PW0306), two bridges with one token
// (PW0307), a token that the data never writes or one of the data that no bridge replaces (PW0308), a token outside the
// vocabulary (PW0601). With several encoders every encoder sees every image. The text then has, for each image and each
// bridge in recipe order, that bridge's token as often as its encoder makes rows of the image.
bool CheckBridgeTokens(const Recipe& recipe, Diagnostics& diagnostics);

}  // namespace planwright
