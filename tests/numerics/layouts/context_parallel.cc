#include "tests/numerics/layouts.h"

namespace planwright::testing {

// The encoder has no cp here; layouts/encoder_context_parallel.cc has that. cp * tp must divide the groups of Mamba.
std::vector<Layout> ContextParallelLayouts() {
  const std::vector<std::string> cp2 = Parallel("language", {{"cp", 2}}), cp4 = Parallel("language", {{"cp", 4}}),
                                 groups4 = {"models.hybrid_moe_tiny.mamba.groups=4"};
  return {
      {"cp2", Join(EncoderOn(1, 1), LanguageOn(1, 2, 1, 1), cp2)},
      {"cp2_ep2", Join(EncoderOn(1, 1), LanguageOn(1, 2, 1, 2), cp2)},
      {"cp4_ep4", Join(EncoderOn(1, 1), LanguageOn(1, 4, 1, 4), cp4), groups4},
      {"cp2_tp2", Join(EncoderOn(2, 2), LanguageOn(2, 4, 2, 1), cp2), groups4},
      {"cp2_tp2_ep4", Join(EncoderOn(1, 1), LanguageOn(1, 4, 2, 4), cp2), groups4},
      {"cp2_dp2", Join(EncoderOn(2, 1), LanguageOn(2, 4, 1, 1), cp2)},
      {"cp2_dp2_ep4", Join(EncoderOn(1, 1), LanguageOn(1, 4, 1, 4), cp2), {"batch.micro_samples=2"}},
      {"cp2_fan_in", Join(EncoderOn(4, 1), LanguageOn(4, 2, 1, 2), cp2), {"batch.micro_samples=4"}},
      {"cp2_text", Join(LanguageOn(0, 2, 1, 1), cp2), {}, kTextRecipe, {}},
      {"cp4_text_micro2", Join(LanguageOn(0, 4, 1, 2), cp4), Join(groups4, {"batch.micro_samples=2"}), kTextRecipe, {}},
  };
}

}  // namespace planwright::testing
