// Random recipes with many layouts and settings at once. Most are valid. Some have two encoders with any number of
// stages.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "planner/plan/statement/model_statement.h"

namespace planwright::testing {

class RandomRecipe {
 public:
  explicit RandomRecipe(unsigned seed) : draws_(seed), two_encoders_(One({0, 0, 1}) == 1) {}

  std::string File() const {
    return two_encoders_ ? "tests/verify/two_encoders.yaml" : "recipes/nemotron_moe_vlm_tiny.yaml";
  }

  // Grids whose sizes fit, and any settings.
  std::vector<std::string> Overrides() {
    overrides_ = {"cluster.gpus_per_node=64", "cluster.nodes=4", "models.hybrid_moe_tiny.mamba.groups=8"};
    Set("models.hybrid_moe_tiny.attention.kv_groups", One({1, 2, 4, 4}));
    Set("models.hybrid_moe_tiny.vocabulary", One({256, 256, 259}));
    const bool together = One({0, 0, 0, 1}) == 1;
    const int tp = One({1, 1, 2}), cp = together ? 1 : One({1, 1, 1, 2, 4}), pp = together ? 1 : One({1, 1, 2, 4}),
              dp = One({1, 1, 2, 3, 4});
    const std::string pattern = Pattern(pp);
    Language(tp, cp, pp, dp, pattern);
    Encoder(together, tp * cp * pp * dp);
    Data(dp);
    Training(pattern);
    // What every model of these recipes has.
    if (One({0, 0, 1}) == 1)
      Set("optimizer.parts", One({"[{match: radio_encoder.projection, learning_rate: 1.0e-2}, {match: language, "
                                  "weight_decay: 0.3}]",
                                  "[{match: \"*norm*\", learning_rate: 1.0e-4}, {match: language, learning_rate: 0.0}]",
                                  "[{match: \"*\", learning_rate: 1.0e-3, weight_decay: 0.0}]"}));
    return overrides_;
  }

 private:
  template <typename T>
  T One(std::vector<T> choices) {
    return choices[std::uniform_int_distribution<size_t>(0, choices.size() - 1)(draws_)];
  }
  int One(std::initializer_list<int> choices) { return One(std::vector<int>(choices)); }
  std::string One(std::initializer_list<const char*> choices) {
    return One(std::vector<std::string>(choices.begin(), choices.end()));
  }

  void Set(const std::string& key, const std::string& value) { overrides_.push_back(key + "=" + value); }
  void Set(const std::string& key, int value) { Set(key, std::to_string(value)); }
  int Divisor(int of, std::initializer_list<int> choices) {
    std::vector<int> fitting = {1};
    std::copy_if(choices.begin(), choices.end(), std::back_inserter(fitting),
                 [&](int choice) { return of % choice == 0; });
    return One(fitting);
  }

  std::string Pattern(int pp) {
    if (pp == 1) return One({"ME*E", "M", "*", "E", "-", "MMMM", "**", "EE", "M-*-", "MEE*", "E*M*E*ME", "-E-E*M"});
    return One({"ME*E", "MMMM", "****", "----", "MEE*", "EEEE", "E*M*E*ME", "MEMEMEME", "M*EE", "-M-*", "E-*-M-E*"});
  }

  // Cuts anywhere, so that a stage may have all layers or none.
  std::string StageLayers(int pp, int layers) {
    std::vector<int> cuts = {0, layers};
    for (int i = 1; i < pp; ++i) cuts.push_back(std::uniform_int_distribution<int>(0, layers)(draws_));
    std::sort(cuts.begin(), cuts.end());
    std::string text;
    for (int i = 0; i < pp; ++i) text += (i == 0 ? "[" : ",") + std::to_string(cuts[i + 1] - cuts[i]);
    return text + "]";
  }

  void Language(int tp, int cp, int pp, int dp, const std::string& pattern) {
    const std::string parallel = "modules.language.parallel.";
    const bool experts = pattern.find('E') != std::string::npos;
    const int expert_tp = experts ? Divisor(tp * cp * dp, {1, 2, 3, 4}) : 1,
              ep = experts ? Divisor(tp * cp * dp / expert_tp, {1, 2, 4, 8}) : 1;
    Set("models.hybrid_moe_tiny.pattern", "'" + pattern + "'");
    if (pattern.find('-') != std::string::npos) Set("models.hybrid_moe_tiny.mlp", "{ffn: 24}");
    Set("modules.language.placement.ranks", tp * cp * pp * dp);
    Set(parallel + "tp", tp);
    Set(parallel + "cp", cp);
    Set(parallel + "pp", pp);
    Set(parallel + "ep", ep);
    Set(parallel + "expert_tp", expert_tp);
    if (ep > 1) Set(parallel + "dispatch", One({"auto", "all_to_all", "all_gather"}));
    if (ep * expert_tp > 1) Set(parallel + "overlap_dispatch", One({"true", "false"}));
    if (pp > 1 && One({0, 1}) == 1) Set(parallel + "stage_layers", StageLayers(pp, static_cast<int>(pattern.size())));
    Set("models.hybrid_moe_tiny.moe.top_k", One({1, 2, 8}));
    Set("models.hybrid_moe_tiny.moe.normalized", One({"true", "false"}));
    Set("models.hybrid_moe_tiny.moe.aux_loss", One({"0", "1.0e-4"}));
    Set("models.hybrid_moe_tiny.moe.bias_rate", One({"0", "1.0e-3"}));
  }

  void Encoder(bool together, int language_ranks) {
    const std::string parallel = "modules.radio_encoder.parallel.";
    const int tp = together ? Divisor(language_ranks, {1, 2, 4}) : One({1, 1, 2, 4}),
              cp = together ? 1 : One({1, 1, 1, 2, 3});
    const int pp = EncoderStages(together), second_pp = two_encoders_ ? EncoderStages(together) : 1;
    const int ranks = together ? language_ranks : tp * cp * pp * One({1, 1, 2, 3, 4, 5});
    Set("modules.radio_encoder.placement.ranks", ranks);
    const int more = two_encoders_ ? SecondEncoder(together, ranks, second_pp) : 0;
    Set("modules.language.placement.first_rank", together ? 0 : ranks + more);
    Set(parallel + "tp", tp);
    Set(parallel + "cp", cp);
    Set(parallel + "pp", pp);
    Set("models.radio_vit_tiny.class_tokens", One({1, 2}));
    Set("models.radio_vit_tiny.pixel_shuffle", One({1, 2}));
    Set("models.radio_vit_tiny.positions", One({"crop", "interpolate"}));
    Set("models.radio_vit_tiny.activation", One({"gelu_tanh", "gelu"}));
    Set("models.radio_vit_tiny.final_norm", One({"layernorm", "none"}));
    Set("models.radio_vit_tiny.layers", std::max(pp, second_pp) > 2 ? 4 : One({2, 4}));
  }

  int EncoderStages(bool together) { return together ? 1 : One({1, 1, 2, 4}); }

  int SecondEncoder(bool together, int first_ranks, int pp) {
    const int ranks = together ? first_ranks : pp * One({1, 2, 3, 4, 6});
    Set("modules.second_encoder.placement.first_rank", together ? 0 : first_ranks);
    Set("modules.second_encoder.placement.ranks", ranks);
    Set("modules.second_encoder.parallel.tp", Divisor(ranks / pp, {1, 2, 4}));
    Set("modules.second_encoder.parallel.pp", pp);
    Set("modules.second_encoder.train.backbone", One({"trained", "frozen"}));
    Set("modules.second_encoder.train.projection", One({"trained", "frozen"}));
    return ranks;
  }

  void Data(int lanes) {
    const bool documents = One({0, 0, 1}) == 1;
    const int micro = documents ? 1 : One({1, 1, 2, 3});
    Set("batch.micro_samples", micro);
    Set("batch.global_samples", micro * lanes * One({1, 2, 3, 4, 8}));
    Set("batch.sequence_length", One({48, 96}));
    Set("data.packed_documents", documents ? "true" : "false");
    const int64_t most_images = One({0, 1, 2});
    Set("data.max_images", most_images);
    Set("data.min_images", std::min<int64_t>(most_images, One({0, 0, 1, 2})));
    Set("data.text_tokens", One({2, 8}));
    Set("data.image_grids", One({"[[2, 2]]", two_encoders_ ? "[[2, 4]]" : "[[4, 6], [2, 4]]"}));
  }

  void Training(const std::string& pattern) {
    const std::string backbone = One({"trained", "frozen"});
    const std::string kind = StatementOf("hybrid_lm")->FindLayer(pattern[0])->word;
    Set("gradients.overlap_reduce", One({"true", "false"}));
    Set("gradients.overlap_gather", One({"true", "false"}));
    Set("gradients.buckets", One({1, 3, 50}));
    Set("precision.params", One({"bf16", "fp32", "fp64"}));
    Set("modules.radio_encoder.train.backbone", backbone);
    Set("modules.radio_encoder.train.projection", One({"trained", "trained", "frozen"}));
    Set("modules.language.train.backbone", One({"trained", "trained", "frozen"}));
    Set("modules.language.recompute",
        One(std::vector<std::string>{"none", "full", kind, "elementwise", "[" + kind + ", elementwise]"}));
    Set("modules.radio_encoder.recompute",
        backbone == "frozen" ? std::string("none") : One({"none", "full", "block", "elementwise"}));
    if (One({0, 0, 0, 1}) == 1) Set("initialize.from", "weights.safetensors");
    if (One({0, 0, 1}) == 1) Set("checkpoint.every_steps", 3);
  }

  std::mt19937 draws_;
  const bool two_encoders_;
  std::vector<std::string> overrides_;
};

}  // namespace planwright::testing
