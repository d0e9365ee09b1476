// The kinds of layers, from the table layer_kinds.def: their letters and words, and which models have them.
#pragma once

#include <span>
#include <string_view>

namespace planwright {

struct LayerKind {
  enum class Of {
    kLanguage,  // a language model
    kEncoder,   // an image encoder
    kUnbuilt,   // no model: the letter is known, and refused by name
  };
  char letter = 0;        // in patterns and in LayerSummary::kind
  std::string_view word;  // "mamba"
  Of of = Of::kUnbuilt;   // which models have such layers
};

// In the table's order.
std::span<const LayerKind> LayerKinds();

// Null: no such kind.
const LayerKind* FindLayerKind(char letter);
const LayerKind* FindLayerKind(std::string_view word);

// The word of `recompute` that is no layer kind: of layers of all kinds, what is elementwise runs again (ops.def).
inline constexpr std::string_view kElementwise = "elementwise";

// The word of a letter, as `recompute` takes it: "mamba", "attention", "moe", "mlp", "block" (of an encoder). Empty: no
// such kind.
std::string_view LayerWord(char letter);

}  // namespace planwright
