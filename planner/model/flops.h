// Floating-point operations of a model, a multiply-add counted as two. Matrix products, attention scores and the Mamba
// scan are counted; norms, activations and the convolution are not. Formulas: docs/flops.md. Those of a language
// model's layers: language_layer.h.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/recipe/recipe.h"

namespace planwright {

// Forward of the output head for one token.
int64_t HeadForwardFlops(const HybridLmModel& model);

// Forward of one encoder block for one patch, class tokens included, on average over images of `patches`, each as
// frequent.
struct BlockFlops {
  int64_t forward = 0;
  int64_t mixing = 0;  // of these, the attention scores
};
BlockFlops BlockForwardFlops(const RadioVitModel& model, const std::vector<int64_t>& patches);

// Forward of the patch embedding, and of the projector, for one patch.
int64_t EmbedderForwardFlops(const RadioVitModel& model);
int64_t ProjectorForwardFlops(const RadioVitModel& model, int64_t output_width);

}  // namespace planwright
