#include "planner/model/expand_language.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "planner/diagnostics/bug.h"
#include "planner/model/expand_model.h"
#include "planner/model/flops.h"
#include "planner/model/parameter_builder.h"

namespace planwright {
namespace {

Init Normal(double std) { return {Init::Kind::kNormal, std, 0}; }
constexpr Init kOnes = {Init::Kind::kOnes, 0, 0};

struct Scales {
  Init input;     // input-side weights, embedding, head
  Init residual;  // projections onto the residual stream: std / sqrt(layers)
};

// Facts 3.5: in_proj rows are [z | x | B | C | dt], each cut by itself.
void AddMamba(const HybridLmModel& model, const Scales& scales, const std::string& prefix, ParameterBuilder& add) {
  const auto& mamba = model.mamba;
  const int64_t inner = mamba.heads * mamba.head_dim, bc = mamba.groups * mamba.state, heads = mamba.heads;
  const int64_t hidden = model.hidden, conv = mamba.conv;
  add.Add("norm", prefix + "norm.weight", {hidden}, kOnes);
  add.Add("in_proj", prefix + "mixer.in_proj.weight", {2 * inner + 2 * bc + heads, hidden}, scales.input, 0,
          {inner, inner, bc, bc, heads});
  const Init conv_bound = {Init::Kind::kUniform, -1 / std::sqrt(static_cast<double>(conv)), 1 / std::sqrt(static_cast<double>(conv))};
  add.Add("conv_weight", prefix + "mixer.conv1d.weight", {inner + 2 * bc, 1, conv}, conv_bound, 0, {inner, bc, bc});
  add.Add("conv_bias", prefix + "mixer.conv1d.bias", {inner + 2 * bc}, conv_bound, 0, {inner, bc, bc});
  add.Add("A_log", prefix + "mixer.A_log", {heads}, {Init::Kind::kLogUniform, 1, 16}, 0);
  add.Add("D", prefix + "mixer.D", {heads}, kOnes, 0);
  add.Add("dt_bias", prefix + "mixer.dt_bias", {heads}, {Init::Kind::kDtBias, 0.001, 0.1}, 0);
  add.Add("mixer_norm", prefix + "mixer.norm.weight", {inner}, kOnes, 0);
  add.Add("out_proj", prefix + "mixer.out_proj.weight", {hidden, inner}, scales.residual, 1);
}

// Stored [all q | all k | all v]: rows grouped per kv head would force a copy of q (facts 3.4 has them grouped in another file format).
void AddAttention(const HybridLmModel& model, const Scales& scales, const std::string& prefix, ParameterBuilder& add) {
  const auto& attention = model.attention;
  const int64_t q = attention.heads * attention.head_dim, kv = attention.kv_groups * attention.head_dim, hidden = model.hidden;
  add.Add("norm", prefix + "norm.weight", {hidden}, kOnes);
  add.AddJoined("qkv",
                {{prefix + "mixer.q_proj.weight", {q, hidden}},
                 {prefix + "mixer.k_proj.weight", {kv, hidden}},
                 {prefix + "mixer.v_proj.weight", {kv, hidden}}},
                scales.input);
  add.Add("o_proj", prefix + "mixer.o_proj.weight", {hidden, q}, scales.residual, 1);
}

void AddMoe(const HybridLmModel& model, const Scales& scales, const std::string& prefix, ParameterBuilder& add) {
  const auto& moe = model.moe;
  const int64_t hidden = model.hidden;
  add.Add("norm", prefix + "norm.weight", {hidden}, kOnes);
  add.Add("gate", prefix + "mixer.gate.weight", {moe.experts, hidden}, scales.input);
  add.AddBuffer("gate_bias", prefix + "mixer.gate.e_score_correction_bias", {moe.experts});
  add.AddExperts("up", prefix + "mixer.experts.{expert}.up_proj.weight", moe.experts, {moe.ffn, hidden}, scales.input, 0);
  add.AddExperts("down", prefix + "mixer.experts.{expert}.down_proj.weight", moe.experts, {hidden, moe.ffn}, scales.residual, 1);
  add.Add("shared_up", prefix + "mixer.shared_experts.up_proj.weight", {moe.shared_ffn, hidden}, scales.input, 0);
  add.Add("shared_down", prefix + "mixer.shared_experts.down_proj.weight", {hidden, moe.shared_ffn}, scales.residual, 1);
}

void AddLayer(char kind, const HybridLmModel& model, const Scales& scales, const std::string& prefix, ParameterBuilder& add) {
  switch (kind) {
    case 'M': return AddMamba(model, scales, prefix, add);
    case '*': return AddAttention(model, scales, prefix, add);
    case 'E': return AddMoe(model, scales, prefix, add);
  }
  Bug(absl::StrCat("layer kind ", std::string(1, kind), " passed the pattern check"));
}

// Of the sections that the pattern has layers for.
Attributes ConstantsOf(const HybridLmModel& model, const std::string& layers) {
  Attributes constants = {{"hidden", *model.hidden}, {"vocabulary", *model.vocabulary}, {"init_std", *model.init_std}, {"norm_eps", *model.norm_eps}};
  const auto has = [&](char kind) { return layers.find(kind) != std::string::npos; };
  if (has('*')) {
    const auto& attention = model.attention;
    constants.insert({{"attention.heads", *attention.heads}, {"attention.head_dim", *attention.head_dim}, {"attention.kv_groups", *attention.kv_groups}});
  }
  if (has('M')) {
    const auto& mamba = model.mamba;
    constants.insert({{"mamba.heads", *mamba.heads}, {"mamba.head_dim", *mamba.head_dim}, {"mamba.groups", *mamba.groups},
                      {"mamba.state", *mamba.state}, {"mamba.conv", *mamba.conv}, {"mamba.chunk", *mamba.chunk}});
  }
  if (has('E')) {
    const auto& moe = model.moe;
    constants.insert({{"moe.experts", *moe.experts}, {"moe.top_k", *moe.top_k}, {"moe.ffn", *moe.ffn}, {"moe.shared_ffn", *moe.shared_ffn},
                      {"moe.scale", *moe.scale}, {"moe.aux_loss", *moe.aux_loss}, {"moe.bias_rate", *moe.bias_rate}});
  }
  return constants;
}

}  // namespace

void ExpandLanguage(const HybridLmModel& model, int64_t sequence, const std::vector<int>& stages, Module& module) {
  const std::string layers = LayersOf(model);
  const double std = model.init_std;
  module.carries_loss = true;
  module.constants = ConstantsOf(model, layers);
  const Scales scales = {Normal(std), Normal(std / std::sqrt(static_cast<double>(layers.size())))};
  ParameterBuilder add(module, "language_model.");
  add.set_trained(module.trains_backbone);

  add.set_frame(module.name + ".embed");
  add.Add("embeddings", "backbone.embeddings.weight", {model.vocabulary, model.hidden}, scales.input, 0);
  int64_t count = add.TakeCount();
  int expert_layers = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string frame = absl::StrCat(module.name, ".layers.", i);
    add.set_frame(frame);
    add.set_stage(stages[i]);
    AddLayer(layers[i], model, scales, absl::StrCat("backbone.layers.", i, "."), add);
    module.layers.push_back({layers[i], frame, add.TakeCount(), LayerForwardFlops(layers[i], model, sequence), stages[i],
                             MixingForwardFlops(layers[i], model, sequence), layers[i] == 'E' ? expert_layers++ : -1});
    count += module.layers.back().parameters;
  }
  add.set_frame(module.name + ".head");
  add.set_stage(module.grid.pp - 1);
  add.Add("norm", "backbone.norm_f.weight", {model.hidden}, kOnes);
  add.Add("lm_head", "lm_head.weight", {model.vocabulary, model.hidden}, scales.input, 0);
  module.parameter_count = count + add.TakeCount();
  module.head_flops = HeadForwardFlops(model);
  if (expert_layers > 0) module.imbalance = model.moe.imbalance;
}

}  // namespace planwright
