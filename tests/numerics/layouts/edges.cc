// Batches and grids at the edge of what a recipe can say: lanes without samples, samples without images, images of one
// token, text alone, modules of different grids on the same ranks.
#include "tests/numerics/layouts.h"

namespace planwright::testing {
namespace {

std::vector<std::string> MicroSamples(int samples) { return {"batch.micro_samples=" + std::to_string(samples)}; }

// Groups of keys and of Mamba for tp 4.
std::vector<std::string> FourGroups() {
  return {"models.hybrid_moe_tiny.attention.kv_groups=4", "models.hybrid_moe_tiny.mamba.groups=4"};
}

Layout Text(const std::string& name, const std::vector<std::string>& overrides) {
  return {"text_" + name, overrides, {}, kTextRecipe, {}};
}

}  // namespace

std::vector<Layout> EdgeLayouts() {
  // Without images all texts are equal: at a small rate they are not learnt by heart, which would leave gradients of
  // rounding alone.
  const std::vector<std::string> none = {"data.max_images=0", "budget.learning_rate.peak=1.0e-4",
                                         "budget.learning_rate.min=1.0e-5"},
                                 square = {"data.image_grids=[[2,2]]"}, rare = {"data.max_images=1"};
  return {
      // The encoder has nothing to do: bridges, merges and its gradients are of no rows.
      {"no_images", Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 2)), none},
      {"no_images_colocated", Join(EncoderOn(2, 1), LanguageOn(0, 2, 2, 1)), none},
      // Half of the samples have no image, so lanes and microbatches have none by chance.
      {"rare_images", Join(EncoderOn(2, 1), LanguageOn(2, 2, 1, 2)), rare},
      // Each image is one token.
      // Each image is one patch.
      {"one_patch",
       Join(EncoderOn(2, 1), LanguageOn(2, 2, 1, 2)),
       {"models.radio_vit_tiny.pixel_shuffle=1", "data.image_grids=[[1,1]]"}},
      {"one_square", Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 2)), square},
      // A microbatch of one sample for four encoder lanes, and of two.
      {"idle_lanes", Join(EncoderOn(4, 1), LanguageOn(4, 1, 1, 1))},
      {"half_idle_lanes", Join(EncoderOn(4, 1), LanguageOn(4, 2, 1, 2))},
      {"more_language_lanes", Join(EncoderOn(2, 1), LanguageOn(2, 4, 1, 4))},
      // Larger microbatches on one rank and on several, and a step of one microbatch.
      {"micro_samples_2", Join(EncoderOn(1, 1), LanguageOn(0, 1, 1, 1), MicroSamples(2))},
      {"micro_samples_4", Join(EncoderOn(2, 1), LanguageOn(2, 2, 2, 2), MicroSamples(4))},
      {"one_microbatch", Join(EncoderOn(2, 2), LanguageOn(2, 2, 1, 2), MicroSamples(4))},
      // The same ranks, dealt differently to the two modules.
      {"colocated_tp2_under_tp4", Join(EncoderOn(4, 2), LanguageOn(0, 4, 4, 1)), FourGroups()},
      {"colocated_dp4_under_tp2", Join(EncoderOn(4, 1), LanguageOn(0, 4, 2, 2))},
      {"colocated_tp4_under_dp4", Join(EncoderOn(4, 4), LanguageOn(0, 4, 1, 2))},
      {"colocated_dp4_under_tp4", Join(EncoderOn(4, 1), LanguageOn(0, 4, 4, 4), MicroSamples(2)), FourGroups()},
      Text("dp2", LanguageOn(0, 2, 1, 1)),
      Text("tp2", LanguageOn(0, 2, 2, 2)),
      Text("tp2_dp2_ep4", LanguageOn(0, 4, 2, 4)),
      Text("micro_samples_4", Join(LanguageOn(0, 2, 1, 2), MicroSamples(4))),
  };
}

}  // namespace planwright::testing
