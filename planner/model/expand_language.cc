#include "planner/model/expand_language.h"

#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "planner/model/expand_model.h"
#include "planner/model/flops.h"
#include "planner/model/language_layer.h"
#include "planner/plan/layer_kinds.h"
#include "planner/recipe/fill_defaults.h"

namespace planwright {
namespace {

Init Normal(double std) { return {Init::Kind::kNormal, std, 0}; }

// The numbers of the model, without the sections whose layers the pattern does not have, and without moe.imbalance: no
// size of the model follows from it (it is Module::imbalance).
Attributes ConstantsOf(const HybridLmModel& model, const std::string& layers) {
  Attributes constants = NumbersOf(model);
  constants.erase("moe.imbalance");
  for (const LayerKind& kind : LayerKinds()) {
    if (layers.find(kind.letter) != std::string::npos) continue;
    const std::string section = absl::StrCat(std::string(kind.word), ".");
    std::erase_if(constants, [&](const auto& constant) { return absl::StartsWith(constant.first, section); });
  }
  return constants;
}

}  // namespace

void ExpandLanguage(const HybridLmModel& model, int64_t sequence, const std::vector<int>& stages, Module& module) {
  const std::string layers = LayersOf(model);
  const double std = model.init_std;
  module.carries_loss = true;
  module.constants = ConstantsOf(model, layers);
  // docs/model/language_model.md#initial-values
  const InitScales scales = {Normal(std), Normal(std / std::sqrt(static_cast<double>(layers.size())))};
  ParameterBuilder add(module, "language_model.");
  add.set_trained(module.trains_backbone);

  add.set_frame(module.name + ".embed");
  add.Add("embeddings", "backbone.embeddings.weight", {model.vocabulary, model.hidden}, scales.input, 0);
  int64_t count = add.TakeCount();
  int expert_layers = 0;  // `E` layers so far: the row of the next one in $expert_counts
  // Parameters are added in the order of the forward. The backward finishes gradients in about the reverse order, in
  // which buckets are filled (bucket_layout.h).
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string frame = absl::StrCat(module.name, ".layers.", i);
    add.set_frame(frame);
    add.set_stage(stages[i]);
    const LanguageLayer& layer = LanguageLayerOf(layers[i]);
    layer.AddParameters(model, scales, absl::StrCat("backbone.layers.", i, "."), add);
    const LayerFlops flops = layer.Flops(model, sequence);
    module.layers.push_back({layers[i], frame, add.TakeCount(), flops.forward, stages[i], flops.mixing,
                             layers[i] == 'E' ? expert_layers++ : -1});
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
