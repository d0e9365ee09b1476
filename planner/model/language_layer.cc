#include "planner/model/language_layer.h"

#include "planner/diagnostics/bug.h"

namespace planwright {

const LanguageLayer& LanguageLayerOf(char letter) {
#define LAYER(id, its_letter, word, title) \
  if (letter == its_letter[0]) return id##Layer();
#include "planner/plan/layer_kinds.def"
  Bug("layer kind " + std::string(1, letter) + " passed the pattern check");
}

}  // namespace planwright
