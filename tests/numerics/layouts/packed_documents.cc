#include "tests/numerics/layouts.h"

namespace planwright::testing {

// A mock sample packs up to three images with their texts, or six texts; chunks of the scan have 16 positions, so
// documents end inside them.
std::vector<Layout> PackedDocumentLayouts() {
  const std::vector<std::string> packed = {"data.packed_documents=true"},
                                 packed4 = Join(packed, {"models.hybrid_moe_tiny.mamba.groups=4"}),
                                 cp2 = Parallel("language", {{"cp", 2}}), cp4 = Parallel("language", {{"cp", 4}});
  return {
      {"packed_tp2", Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 1)), packed},
      {"packed_dp2", Join(EncoderOn(1, 1), LanguageOn(1, 2, 1, 1)), packed},
      {"packed_ep2", Join(EncoderOn(1, 1), LanguageOn(1, 2, 1, 2)), packed},
      {"packed_cp2", Join(EncoderOn(1, 1), LanguageOn(1, 2, 1, 1), cp2), packed},
      {"packed_tp2_cp2", Join(EncoderOn(1, 1), LanguageOn(1, 4, 2, 2), cp2), packed4},
      {"packed_dp2_cp2", Join(EncoderOn(2, 1), LanguageOn(2, 4, 1, 4), cp2), packed},
      {"packed_colocated", Join(EncoderOn(2, 1), LanguageOn(0, 2, 1, 2)), packed},
      {"packed_text_cp4", Join(LanguageOn(0, 4, 1, 2), cp4), packed4, kTextRecipe, {}},
  };
}

}  // namespace planwright::testing
