// Experts cut over expert_tp, alone and together with the other axes of both views.
#include "tests/numerics/layouts.h"

namespace planwright::testing {
namespace {

std::vector<std::string> ExpertTp(int size) { return Parallel("language", {{"expert_tp", size}}); }

}  // namespace

std::vector<Layout> ExpertTpLayouts() {
  const std::vector<std::string> encoder = EncoderOn(1, 1);
  // The bias moves by more than any score: most tokens go to the few experts that had the fewest before. Ranks get far
  // more rows than the mean, or none.
  const std::vector<std::string> uneven = {"models.hybrid_moe_tiny.moe.bias_rate=1.0",
                                           "models.hybrid_moe_tiny.moe.top_k=1",
                                           "models.hybrid_moe_tiny.moe.normalized=false"};
  return {
      {"expert_tp2", Join(encoder, LanguageOn(1, 2, 1, 1), ExpertTp(2))},
      {"text_expert_tp2", Join(LanguageOn(0, 2, 1, 1), ExpertTp(2)), {}, kTextRecipe, {}},
      {"expert_tp4", Join(encoder, LanguageOn(1, 4, 2, 1), ExpertTp(4))},
      {"expert_tp2_expert_dp2", Join(encoder, LanguageOn(1, 4, 1, 1), ExpertTp(2))},
      {"expert_tp2_tp2", Join(encoder, LanguageOn(1, 2, 2, 1), ExpertTp(2))},
      {"expert_tp2_ep2", Join(encoder, LanguageOn(1, 4, 1, 2), ExpertTp(2))},
      {"expert_tp2_ep2_tp2_dp2", Join(EncoderOn(2, 2), LanguageOn(2, 4, 2, 2), ExpertTp(2))},
      {"expert_tp2_ep2_tp2_dp4", Join(encoder, LanguageOn(1, 8, 2, 2), ExpertTp(2))},
      {"expert_tp2_ep2_colocated", Join(EncoderOn(4, 1), LanguageOn(0, 4, 2, 2), ExpertTp(2))},
      {"expert_tp2_ep2_uneven", Join(encoder, LanguageOn(1, 4, 2, 2), ExpertTp(2)), uneven},
      {"expert_tp2_ep4_uneven", Join(encoder, LanguageOn(1, 8, 2, 4), ExpertTp(2)), uneven},
      {"ep4_uneven", Join(encoder, LanguageOn(1, 4, 2, 4)), uneven},
  };
}

}  // namespace planwright::testing
