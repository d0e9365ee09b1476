// Floating-point operations of encoders and of the output head. A multiply-add counts as two. Matrix products,
// attention scores and the Mamba-2 scan are counted; norms, activations and the convolution are not. Formulas:
// docs/flops.md. The layers of a language model count their own (language_layer.h).
#pragma once

#include <cstdint>
#include <vector>

#include "planner/recipe/recipe.h"

namespace planwright {

// The forward of the output head, for one token.
int64_t HeadForwardFlops(const HybridLmModel& model);

// The forward of one encoder block, for one patch, on average over images with these numbers of patches, all equally
// frequent. Class tokens are included: their work is divided among the patches.
struct BlockFlops {
  int64_t forward = 0;
  int64_t mixing = 0;  // the part of `forward` that is attention scores
};
BlockFlops BlockForwardFlops(const RadioVitModel& model, const std::vector<int64_t>& patches);

// The forward of the patch embedding, and of the projector, for one patch.
int64_t EmbedderForwardFlops(const RadioVitModel& model);
int64_t ProjectorForwardFlops(const RadioVitModel& model, int64_t output_width);

}  // namespace planwright
