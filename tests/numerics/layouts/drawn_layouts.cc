#include "tests/numerics/layouts/drawn_layouts.h"

namespace planwright::testing {

Layout LayoutDraw::Next() {
  Layout layout;
  training_.clear(), overrides_.clear();
  const int encoders = family_ == DrawnFamily::kHybrid ? Hybrid(layout) : Decoder(layout);
  Encoders(encoders);
  Place(encoders);
  layout.training = training_;
  layout.overrides = overrides_;
  return layout;
}

int LayoutDraw::Hybrid(Layout& layout) {
  const int encoders = Pick({0, 1, 1, 1, 1, 2, 2});
  layout.recipe = encoders == 0   ? kTextRecipe
                  : encoders == 1 ? kTinyRecipe
                                  : "recipes/nemotron_moe_two_encoders_tiny.yaml";
  if (encoders == 0) layout.one_rank = {};
  experts_ = true;
  // Room for tp and cp of 4.
  Train("models.hybrid_moe_tiny.mamba.groups=4");
  Train("models.hybrid_moe_tiny.attention.kv_groups=" + std::to_string(Pick({1, 2, 4, 4})));
  if (Chance(30)) Train("models.hybrid_moe_tiny.vocabulary=" + std::to_string(Pick({257, 259, 270})));
  Batch();
  if (Chance(30)) {
    Train("models.hybrid_moe_tiny.pattern=\"M-E*-E\"");
    Train("models.hybrid_moe_tiny.mlp={ffn: 40}");
  }
  return encoders;
}

int LayoutDraw::Decoder(Layout& layout) {
  const std::string model = "models.decoder_tiny.";
  const int recipe = Pick({0, 1, 2, 2, 2, 3, 3});
  layout.recipe = recipe == 0   ? "recipes/llama_tiny.yaml"
                  : recipe == 1 ? "recipes/qwen3_tiny.yaml"
                  : recipe == 2 ? "recipes/qwen3_moe_tiny.yaml"
                                : "recipes/qwen3_vlm_tiny.yaml";
  if (recipe != 3) layout.one_rank = {};
  experts_ = recipe == 2;
  tied_ = Chance(25);
  if (tied_) Train(model + "tied=true");
  if (Chance(35)) Train(model + "attention.biases=" + (Chance(50) ? "qkv" : "all"));
  if (Chance(25)) Train(model + "attention.normed=" + (recipe == 0 ? "true" : "false"));
  Train(model + "attention.kv_groups=" + std::to_string(Pick({1, 2, 4, 4})));
  if (Chance(30)) Train(model + "vocabulary=" + std::to_string(Pick({257, 259, 270})));
  Rope();
  if (experts_) Experts();
  if (!experts_ && Chance(30)) Train(model + "layers=" + std::to_string(Pick({1, 3, 4})));
  Batch();
  return recipe == 3 ? 1 : 0;
}

void LayoutDraw::Rope() {
  const std::string rope = "models.decoder_tiny.rope.";
  if (Chance(40)) Train(rope + "features=" + std::to_string(Pick({2, 8, 12})));
  if (Chance(50)) return;
  const int scaling = Pick({0, 1, 2});
  Train(rope + "scaling=" + (scaling == 0 ? "linear" : scaling == 1 ? "llama3" : "yarn"));
  Train(rope + "factor=" + std::to_string(Pick({2, 4, 8})) + ".0");
  if (scaling != 0) Train(rope + "original=" + std::to_string(Pick({8, 16, 32})));
}

void LayoutDraw::Experts() {
  const std::string model = "models.decoder_tiny.";
  if (Chance(40)) Train(model + "pattern=\"" + (Chance(50) ? "*E*E" : "*-*E*E") + "\"");
  Train(model + "moe.top_k=" + std::to_string(Pick({1, 2, 3, 8})));
  Train(model + "moe.normalized=" + (Chance(50) ? "true" : "false"));
  if (Chance(30)) Train(model + "moe.aux_loss=0.0");
}

void LayoutDraw::Batch() {
  Train("batch.sequence_length=64");
  const int micro_samples = Pick({1, 1, 1, 2, 4});
  Train("batch.micro_samples=" + std::to_string(micro_samples));
  if (micro_samples == 1 && Chance(25)) Train("data.packed_documents=true");
  if (Chance(15)) Train("modules.language.train.backbone=frozen");
}

void LayoutDraw::Encoders(int encoders) {
  if (encoders == 0) return;
  Train("data.max_images=" + std::to_string(Pick({0, 2, 3, 3})));
  if (Chance(30)) Train("data.image_grids=[[2, 2], [2, 6], [4, 4]]");
  if (Chance(30)) Train("models.radio_vit_tiny.positions=interpolate");
  if (Chance(30)) Train("models.radio_vit_tiny.activation=gelu");
  if (Chance(30)) Train("models.radio_vit_tiny.final_norm=none");
  for (const char* encoder : {"radio_encoder", "fine_encoder"}) {
    if (encoders == 1 && std::string(encoder) == "fine_encoder") continue;
    const std::string of = "modules." + std::string(encoder) + ".train.";
    if (Chance(25)) Train(of + "backbone=frozen");
    if (Chance(15)) Train(of + "projection=frozen");
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
  const int tp = Pick({1, 1, 2, 4}), cp = Pick({1, 1, 1, 2, 4}), pp = language && tied_ ? 1 : Pick({1, 1, 1, 2, 3, 4}),
            dp = Pick({1, 1, 2, 3, 4}), ranks = tp * cp * pp * dp;
  const std::string module = "modules." + name + ".";
  overrides_.push_back(module + "placement.first_rank=" + std::to_string(first_rank));
  overrides_.push_back(module + "placement.ranks=" + std::to_string(ranks));
  std::vector<AxisSize> axes = {{"tp", tp}, {"cp", cp}, {"pp", pp}};
  if (language && experts_) {
    axes.push_back({"ep", Pick({1, 2, 2, 4, 8})});
    axes.push_back({"expert_tp", Pick({1, 1, 1, 2, 4})});
  }
  for (const std::string& axis : Parallel(name, axes)) overrides_.push_back(axis);
  if (Chance(20)) overrides_.push_back(module + "recompute=[full]");
  if (language && Chance(15))
    overrides_.push_back(module + "recompute=[" + (experts_ ? "moe" : "attention, mlp") + "]");
  if (Chance(15)) overrides_.push_back(module + "recompute=[elementwise]");
  if (language && experts_ && Chance(40)) overrides_.push_back(module + "parallel.dispatch=all_gather");
  if (language && experts_ && Chance(40)) overrides_.push_back(module + "parallel.overlap_dispatch=true");
  ranks_ = first_rank + ranks;
  return ranks_;
}

std::string PartsDraw::Next() {
  static const std::vector<std::string> kMatches = {"language",
                                                    "radio_encoder",
                                                    "radio_encoder.backbone",
                                                    "radio_encoder.projection",
                                                    "fine_encoder",
                                                    "*",
                                                    "*norm*",
                                                    "*embed*",
                                                    "*lm_head.weight",
                                                    "*.q_proj.weight",
                                                    "*.k_proj.*",
                                                    "*.v_proj.*",
                                                    "*.bias",
                                                    "*.gate.weight",
                                                    "*.experts.*",
                                                    "*.gate_proj.*",
                                                    "*.up_proj.*",
                                                    "*layers.1.*",
                                                    "*.in_proj.weight",
                                                    "*.down_proj.weight"};
  const auto one_of = [&](const std::vector<std::string>& choices) { return choices[random_() % choices.size()]; };
  std::string parts;
  for (uint64_t left = 1 + random_() % 4; left > 0; --left) {
    std::string rates;
    if (random_() % 4 != 0) rates += ", learning_rate: " + one_of({"0.0", "1.0e-4", "1.0e-3", "6.0e-3"});
    if (rates.empty() || random_() % 2 == 0) rates += ", weight_decay: " + one_of({"0.0", "0.02", "0.3"});
    parts += (parts.empty() ? "{match: \"" : ", {match: \"") + one_of(kMatches) + "\"" + rates + "}";
  }
  return "optimizer.parts=[" + parts + "]";
}

}  // namespace planwright::testing
