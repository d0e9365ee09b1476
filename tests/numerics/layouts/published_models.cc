// Models as others have published them: an encoder without a final norm and with the exact GELU, and dense MLP layers.
#include "tests/numerics/layouts.h"

namespace planwright::testing {

std::vector<Layout> PublishedModelLayouts() {
  const std::vector<std::string> encoder = {"models.radio_vit_tiny.final_norm=none",
                                            "models.radio_vit_tiny.activation=gelu"};
  const auto with = [&](const std::string& pattern) {
    return Join(encoder,
                {"models.hybrid_moe_tiny.pattern=\"" + pattern + "\"", "models.hybrid_moe_tiny.mlp={ffn: 40}"});
  };
  const std::vector<std::string> omni = with("M-*E-E"), dense = with("-M*-");  // dense: no experts
  const auto encoder_on = [](const char* axis) {
    return Join(EncoderOn(2, 1), Parallel("radio_encoder", {{axis, 2}}));
  };
  return {
      {"published_tp2_ep2", Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 2)), omni},
      {"published_cp2", Join(encoder_on("cp"), LanguageOn(2, 2, 1, 1), Parallel("language", {{"cp", 2}})), omni},
      {"published_colocated", Join(EncoderOn(4, 1), LanguageOn(0, 4, 2, 4)), omni},
      {"published_frozen", Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 1)),
       Join(omni, {"modules.radio_encoder.train.backbone=frozen"})},
      {"published_pp2_cp2_recompute",
       Join(encoder_on("pp"), Join(LanguageOn(2, 4, 1, 1), Parallel("language", {{"pp", 2}, {"cp", 2}})),
            {"modules.language.recompute=[mlp]"}),
       dense},
      {"published_dp2_tp2", Join(EncoderOn(1, 1), LanguageOn(1, 4, 2, 1)), dense},
  };
}

}  // namespace planwright::testing
