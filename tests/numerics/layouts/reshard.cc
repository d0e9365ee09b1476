#include "tests/numerics/layouts.h"

namespace planwright::testing {

// A frozen projection has weights of their own type beside the masters of bf16. On 4 tp ranks the 2 key heads lie whole
// on each, and tp divides the vocabulary nowhere.
std::vector<std::string> ReshardTraining() {
  return {"models.hybrid_moe_tiny.mamba.groups=4", "models.hybrid_moe_tiny.vocabulary=259",
          "modules.radio_encoder.train.projection=frozen", "checkpoint.every_steps=2"};
}

// Twelve layouts with all axes of both views, stages of unequal and of no layers, several lanes, few and many buckets,
// modules apart and on the same ranks. Neighbours differ in as much as they can.
std::vector<Layout> ReshardLayouts() {
  const auto encoder = [](int ranks, std::vector<AxisSize> axes) {
    return Join(EncoderOn(ranks, 1), Parallel("radio_encoder", axes));
  };
  const auto language = [](int first, int ranks, std::vector<AxisSize> axes) {
    return Join(LanguageOn(first, ranks, 1, 1), Parallel("language", axes));
  };
  const auto buckets = [](int number) {
    return std::vector<std::string>{"gradients.buckets=" + std::to_string(number)};
  };
  return {
      {"one_rank", OneRankOnly()},
      {"tp2_ep4_dp2", Join(encoder(1, {}), language(1, 4, {{"tp", 2}, {"ep", 4}}))},
      {"uneven_stages",
       Join(encoder(1, {}), language(1, 3, {{"pp", 3}}), {"modules.language.parallel.stage_layers=[1, 0, 3]"})},
      {"colocated_on_4", Join(encoder(4, {}), language(0, 4, {{"tp", 2}, {"ep", 4}}))},
      {"cp2_dp2", Join(encoder(2, {{"cp", 2}}), language(2, 4, {{"cp", 2}, {"ep", 2}}), buckets(8))},
      {"tp2_tp2", Join(encoder(2, {{"tp", 2}}), language(2, 2, {{"tp", 2}}))},
      {"every_axis",
       Join(encoder(2, {{"cp", 2}}), language(2, 8, {{"pp", 2}, {"cp", 2}, {"tp", 2}, {"ep", 2}, {"expert_tp", 2}}))},
      {"uneven_lanes", Join(encoder(3, {}), language(3, 2, {}), buckets(1))},
      {"expert_tp2_ep2", Join(encoder(2, {{"tp", 2}}), language(2, 4, {{"tp", 2}, {"ep", 2}, {"expert_tp", 2}}))},
      {"both_deep", Join(encoder(2, {{"pp", 2}}), language(2, 4, {{"pp", 2}, {"ep", 2}}), buckets(3))},
      {"cp2_tp2", Join(encoder(1, {}), language(1, 4, {{"cp", 2}, {"tp", 2}}))},
      {"colocated_overlapped", Join(encoder(4, {{"tp", 2}}), language(0, 4, {{"tp", 4}}),
                                    {"gradients.overlap_reduce=true", "gradients.overlap_gather=true"})},
  };
}

}  // namespace planwright::testing
