#include "tests/numerics/layouts.h"

namespace planwright::testing {

std::vector<Layout> PipelineLayouts() {
  const auto language = [](int first, int ranks, std::vector<AxisSize> axes) {
    return Join(LanguageOn(first, ranks, 1, 1), Parallel("language", axes));
  };
  const auto encoder = [](int ranks, std::vector<AxisSize> axes) {
    return Join(EncoderOn(ranks, 1), Parallel("radio_encoder", axes));
  };
  const std::vector<std::string> both_deep = Join(encoder(2, {{"pp", 2}}), language(2, 2, {{"pp", 2}}));
  return {
      {"pp2", Join(encoder(1, {}), language(1, 2, {{"pp", 2}}))},
      {"pp4", Join(encoder(1, {}), language(1, 4, {{"pp", 4}}))},
      {"encoder_pp2", Join(encoder(2, {{"pp", 2}}), language(2, 1, {}))},
      {"encoder_pp2_pp2", both_deep},
      {"encoder_tp2_pp2_tp2_pp2", Join(encoder(4, {{"tp", 2}, {"pp", 2}}), language(4, 4, {{"tp", 2}, {"pp", 2}}))},
      {"pp2_dp2_ep2", Join(encoder(2, {}), language(2, 4, {{"pp", 2}, {"ep", 2}}))},
      {"pp2_tp2_ep4_dp2", Join(encoder(1, {}), language(1, 8, {{"pp", 2}, {"tp", 2}, {"ep", 4}}))},
      {"pp2_uneven",
       Join(encoder(1, {}), language(1, 2, {{"pp", 2}}), {"modules.language.parallel.stage_layers=[3, 1]"})},
      {"pp3_with_an_empty_stage",
       Join(encoder(1, {}), language(1, 3, {{"pp", 3}}), {"modules.language.parallel.stage_layers=[1, 0, 3]"})},
      {"pp3_head_alone",
       Join(encoder(1, {}), language(1, 3, {{"pp", 3}}), {"modules.language.parallel.stage_layers=[1, 3, 0]"})},
      {"encoder_pp3_with_an_empty_stage",
       Join(encoder(3, {{"pp", 3}}), language(3, 1, {}), {"modules.radio_encoder.parallel.stage_layers=[1, 0, 1]"})},
      {"pp2_uneven_lanes", Join(encoder(6, {{"pp", 2}}), language(6, 4, {{"pp", 2}}))},
      {"pp2_micro2", both_deep, {"batch.micro_samples=2"}},
      {"text_pp2", language(0, 2, {{"pp", 2}}), {}, kTextRecipe, {}},
      {"text_pp2_tp2_ep2", language(0, 4, {{"pp", 2}, {"tp", 2}, {"ep", 2}}), {}, kTextRecipe, {}},
      {"pp2_cp2", Join(encoder(1, {}), language(1, 4, {{"pp", 2}, {"cp", 2}}))},
      {"encoder_pp2_cp2", Join(encoder(4, {{"pp", 2}, {"cp", 2}}), language(4, 1, {}))},
      {"pp2_expert_tp2", Join(encoder(1, {}), language(1, 4, {{"pp", 2}, {"expert_tp", 2}}))},
      {"pp2_cp2_tp2_ep2_expert_tp2",
       Join(encoder(2, {{"cp", 2}}), language(2, 8, {{"pp", 2}, {"cp", 2}, {"tp", 2}, {"ep", 2}, {"expert_tp", 2}})),
       {"models.hybrid_moe_tiny.mamba.groups=4"}},
      {"pp2_frozen_language", both_deep, {"modules.language.train.backbone=frozen"}},
      {"pp2_frozen_encoder",
       both_deep,
       {"modules.radio_encoder.train.backbone=frozen", "modules.radio_encoder.train.projection=frozen"}},
      {"pp2_recompute_overlap",
       Join(both_deep, {"modules.language.recompute=[full]", "modules.radio_encoder.recompute=[full]",
                        "gradients.overlap_reduce=true", "gradients.overlap_gather=true"})},
      {"pp4_packed_documents", Join(encoder(1, {}), language(1, 4, {{"pp", 4}})), {"data.packed_documents=true"}},
      {"pp2_cp2_packed_documents",
       Join(encoder(1, {}), language(1, 4, {{"pp", 2}, {"cp", 2}})),
       {"data.packed_documents=true"}},
      {"pp2_with_one_microbatch", both_deep, {"batch.micro_samples=8"}},
  };
}

}  // namespace planwright::testing
