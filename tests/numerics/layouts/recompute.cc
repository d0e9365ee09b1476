#include "tests/numerics/layouts.h"

namespace planwright::testing {

// Recompute is no part of what is trained: the one rank that these are compared with recomputes nothing.
std::vector<Layout> RecomputeLayouts() {
  const std::vector<std::string> full = {"modules.language.recompute=[full]", "modules.radio_encoder.recompute=[full]"};
  return {
      {"recompute_full_tp2_ep2", Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 2), full)},
      {"recompute_full_colocated", Join(EncoderOn(4, 1), LanguageOn(0, 4, 2, 4), full)},
      {"recompute_full_on_one_rank", Join(OneRankOnly(), full)},
      {"recompute_moe_ep4",
       Join(EncoderOn(1, 1), LanguageOn(1, 4, 2, 4), {"modules.language.recompute=[moe]", "gradients.buckets=3"})},
      {"recompute_mixers_fan_in",
       Join(EncoderOn(4, 1), LanguageOn(4, 2, 1, 2),
            {"modules.language.recompute=[mamba, attention]", "modules.radio_encoder.recompute=[block]"}),
       {"batch.micro_samples=2"}},
      {"recompute_frozen_language",
       Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 2), full),
       {"modules.language.train.backbone=frozen"}},
      {"recompute_elementwise_tp2_ep2",
       Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 2),
            {"modules.language.recompute=[elementwise]", "modules.radio_encoder.recompute=[elementwise]"})},
      {"recompute_elementwise_beside_layers", Join(OneRankOnly(), {"modules.language.recompute=[moe, elementwise]",
                                                                   "modules.radio_encoder.recompute=[elementwise]"})},
  };
}

}  // namespace planwright::testing
