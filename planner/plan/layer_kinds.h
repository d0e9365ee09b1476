// The kinds of layers, from the table layer_kinds.def: letters and words, and whose layers they are.
#pragma once

#include <span>
#include <string_view>

namespace planwright {

struct LayerKind {
  enum class Of { kLanguage, kEncoder, kUnbuilt };
  char letter = 0;
  std::string_view word;  // "mamba"
  Of of = Of::kUnbuilt;
};

// In the table's order.
std::span<const LayerKind> LayerKinds();

// Null: no such kind.
const LayerKind* FindLayerKind(char letter);
const LayerKind* FindLayerKind(std::string_view word);

// "mamba", "attention", "moe", "block" (of an encoder): the words of `recompute`. Empty: no such kind.
std::string_view LayerWord(char letter);

}  // namespace planwright
