#include "planner/model/language_layer.h"

#include "planner/diagnostics/bug.h"

namespace planwright {

const LanguageLayer& LanguageLayerOf(char letter) {
#define LAYER(id, its_letter, word, title) \
  if (letter == its_letter[0]) return id##Layer();
#include "planner/plan/layer_kinds.def"
  Bug("the pattern check accepted the layer kind " + std::string(1, letter) + ", which has no class");
}

}  // namespace planwright
