#include "planner/plan/layer_kinds.h"

#include <algorithm>

namespace planwright {
namespace {

constexpr LayerKind kKinds[] = {
#define LAYER(id, letter, word, title) {letter[0], word, LayerKind::Of::kLanguage},
#define ENCODER_LAYER(letter, word, title) {letter[0], word, LayerKind::Of::kEncoder},
#define UNBUILT_LAYER(letter, word, title) {letter[0], word, LayerKind::Of::kUnbuilt},
#include "planner/plan/layer_kinds.def"
};

// The first kind that is wanted. The table has eight: searching it is as fast as any index.
template <typename Wanted>
const LayerKind* Find(Wanted wanted) {
  const auto* found = std::find_if(std::begin(kKinds), std::end(kKinds), wanted);
  return found == std::end(kKinds) ? nullptr : found;
}

}  // namespace

std::span<const LayerKind> LayerKinds() { return kKinds; }

const LayerKind* FindLayerKind(char letter) {
  return Find([&](const LayerKind& kind) { return kind.letter == letter; });
}

const LayerKind* FindLayerKind(std::string_view word) {
  return Find([&](const LayerKind& kind) { return kind.word == word; });
}

std::string_view LayerWord(char letter) {
  const LayerKind* kind = FindLayerKind(letter);
  return kind ? kind->word : std::string_view();
}

}  // namespace planwright
