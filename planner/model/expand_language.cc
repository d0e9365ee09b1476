#include "planner/model/expand_language.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "planner/model/expand_model.h"
#include "planner/model/flops.h"
#include "planner/model/language_layer.h"

namespace planwright {
namespace {

Init Normal(double std) { return {Init::Kind::kNormal, std, 0}; }

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
  const InitScales scales = {Normal(std), Normal(std / std::sqrt(static_cast<double>(layers.size())))};
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
    const LanguageLayer& layer = LanguageLayerOf(layers[i]);
    layer.AddParameters(model, scales, absl::StrCat("backbone.layers.", i, "."), add);
    const LayerFlops flops = layer.Flops(model, sequence);
    module.layers.push_back(
        {layers[i], frame, add.TakeCount(), flops.forward, stages[i], flops.mixing, layers[i] == 'E' ? expert_layers++ : -1});
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
