#include "tests/numerics/layouts/drawn_layouts.h"

namespace planwright::testing {

Layout LayoutDraw::Next() {
  Layout layout;
  training_.clear(), overrides_.clear();
  const int encoders = Pick({0, 1, 1, 1, 1, 2, 2});
  layout.recipe = encoders == 0   ? "recipes/nemotron_moe_lm_tiny.yaml"
                  : encoders == 1 ? kTinyRecipe
                                  : "recipes/nemotron_moe_two_encoders_tiny.yaml";
  if (encoders == 0) layout.one_rank = {};
  Train(encoders);
  Place(encoders);
  layout.training = training_;
  layout.overrides = overrides_;
  return layout;
}

void LayoutDraw::Train(int encoders) {
  const auto train = [&](const std::string& text) { training_.push_back(text); };
  // Room for tp and cp of 4.
  train("models.hybrid_moe_tiny.mamba.groups=4");
  train("models.hybrid_moe_tiny.attention.kv_groups=" + std::to_string(Pick({1, 2, 4, 4})));
  if (Chance(30)) train("models.hybrid_moe_tiny.vocabulary=" + std::to_string(Pick({257, 259, 270})));
  train("batch.sequence_length=64");
  const int micro_samples = Pick({1, 1, 1, 2, 4});
  train("batch.micro_samples=" + std::to_string(micro_samples));
  if (micro_samples == 1 && Chance(25)) train("data.packed_documents=true");
  if (Chance(15)) train("modules.language.train.backbone=frozen");
  if (Chance(30)) {
    train("models.hybrid_moe_tiny.pattern=\"M-E*-E\"");
    train("models.hybrid_moe_tiny.mlp={ffn: 40}");
  }
  if (encoders == 0) return;
  train("data.max_images=" + std::to_string(Pick({0, 2, 3, 3})));
  if (Chance(30)) train("data.image_grids=[[2, 2], [2, 6], [4, 4]]");
  if (Chance(30)) train("models.radio_vit_tiny.positions=interpolate");
  if (Chance(30)) train("models.radio_vit_tiny.activation=gelu");
  if (Chance(30)) train("models.radio_vit_tiny.final_norm=none");
  for (const char* encoder : {"radio_encoder", "fine_encoder"}) {
    if (encoders == 1 && std::string(encoder) == "fine_encoder") continue;
    const std::string of = "modules." + std::string(encoder) + ".train.";
    if (Chance(25)) train(of + "backbone=frozen");
    if (Chance(15)) train(of + "projection=frozen");
  }
}

void LayoutDraw::Place(int encoders) {
  const bool colocated = encoders > 0 && Chance(30);
  int next = 0;
  if (encoders > 0) next = AddModule("radio_encoder", false, colocated ? 0 : next);
  if (encoders > 1) next = AddModule("fine_encoder", false, colocated ? 0 : next);
  AddModule("language", true, colocated ? 0 : next);
  overrides_.push_back("gradients.overlap_reduce=" + std::string(Chance(50) ? "true" : "false"));
  overrides_.push_back("gradients.overlap_gather=" + std::string(Chance(50) ? "true" : "false"));
  overrides_.push_back("gradients.buckets=" + std::to_string(Pick({1, 2, 8})));
}

int LayoutDraw::AddModule(const std::string& name, bool language, int first_rank) {
  const int tp = Pick({1, 1, 2, 4}), cp = Pick({1, 1, 1, 2, 4}), pp = Pick({1, 1, 1, 2, 3, 4}),
            dp = Pick({1, 1, 2, 3, 4}), ranks = tp * cp * pp * dp;
  const std::string module = "modules." + name + ".";
  overrides_.push_back(module + "placement.first_rank=" + std::to_string(first_rank));
  overrides_.push_back(module + "placement.ranks=" + std::to_string(ranks));
  std::vector<AxisSize> axes = {{"tp", tp}, {"cp", cp}, {"pp", pp}};
  if (language) {
    axes.push_back({"ep", Pick({1, 2, 2, 4, 8})});
    axes.push_back({"expert_tp", Pick({1, 1, 1, 2, 4})});
  }
  for (const std::string& axis : Parallel(name, axes)) overrides_.push_back(axis);
  if (Chance(20)) overrides_.push_back(module + "recompute=[full]");
  if (language && Chance(15)) overrides_.push_back(module + "recompute=[moe]");
  if (Chance(15)) overrides_.push_back(module + "recompute=[elementwise]");
  if (language && Chance(40)) overrides_.push_back(module + "parallel.dispatch=all_gather");
  if (language && Chance(40)) overrides_.push_back(module + "parallel.overlap_dispatch=true");
  ranks_ = first_rank + ranks;
  return ranks_;
}

}  // namespace planwright::testing
