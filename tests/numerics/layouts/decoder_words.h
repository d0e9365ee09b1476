// The recipes of decoders, and the words of their layouts, that several lists share.
#pragma once

#include <string>
#include <vector>

#include "tests/numerics/layouts.h"

namespace planwright::testing {

using Overrides = std::vector<std::string>;

inline constexpr char kLlama[] = "recipes/llama_tiny.yaml", kQwen[] = "recipes/qwen3_tiny.yaml",
                      kMoe[] = "recipes/qwen3_moe_tiny.yaml", kVlm[] = "recipes/qwen3_vlm_tiny.yaml";

// The language model alone, from rank 0 on.
inline Overrides Language(int ranks, const std::vector<AxisSize>& axes, const Overrides& more = {}) {
  return Join(LanguageOn(0, ranks, 1, 1), Parallel("language", axes), more);
}

// The language model from `first_rank` on, with an encoder before it.
inline Overrides Behind(const Overrides& encoder, int first_rank, int ranks, const std::vector<AxisSize>& axes,
                        const Overrides& more = {}) {
  return Join(Join(encoder, LanguageOn(first_rank, ranks, 1, 1)), Parallel("language", axes), more);
}

inline const Overrides kOverlap = {"gradients.overlap_reduce=true", "gradients.overlap_gather=true",
                                   "gradients.buckets=3"},
                       kGathered = {"modules.language.parallel.dispatch=all_gather"},
                       kSent = {"modules.language.parallel.dispatch=all_to_all"},
                       kOverlapped = {"modules.language.parallel.overlap_dispatch=true"},
                       kFull = {"modules.language.recompute=[full]"},
                       kElementwise = {"modules.language.recompute=[elementwise]"};

}  // namespace planwright::testing
