#include "planner/model/expand_radio.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "planner/model/flops.h"
#include "planner/model/parameter_builder.h"
#include "planner/recipe/fill_defaults.h"

namespace planwright {
namespace {

Init Normal(double std) { return {Init::Kind::kNormal, std, 0}; }
constexpr Init kOnes = {Init::Kind::kOnes, 0, 0};
constexpr Init kZeros = {Init::Kind::kZeros, 0, 0};

// One transformer block. Names, shapes and initial values: docs/model/vision_encoder.md#layers and #initial-values.
void AddBlock(const RadioVitModel& model, const std::string& prefix, ParameterBuilder& add) {
  const int64_t hidden = model.hidden, ffn = model.ffn;
  // Two matrices of each block are added to the residual stream: hence 2 x layers.
  const Init input = Normal(model.init_std);
  const Init residual = Normal(model.init_std / std::sqrt(2.0 * static_cast<double>(*model.layers)));
  add.Add("norm1_weight", prefix + "norm1.weight", {hidden}, kOnes);
  add.Add("norm1_bias", prefix + "norm1.bias", {hidden}, kZeros);
  add.Add("qkv_weight", prefix + "attn.qkv.weight", {3 * hidden, hidden}, input, 0, {hidden, hidden, hidden});
  add.Add("qkv_bias", prefix + "attn.qkv.bias", {3 * hidden}, kZeros, 0, {hidden, hidden, hidden});
  add.Add("proj_weight", prefix + "attn.proj.weight", {hidden, hidden}, residual, 1);
  add.Add("proj_bias", prefix + "attn.proj.bias", {hidden}, kZeros);
  add.Add("norm2_weight", prefix + "norm2.weight", {hidden}, kOnes);
  add.Add("norm2_bias", prefix + "norm2.bias", {hidden}, kZeros);
  add.Add("fc1_weight", prefix + "mlp.fc1.weight", {ffn, hidden}, input, 0);
  add.Add("fc1_bias", prefix + "mlp.fc1.bias", {ffn}, kZeros, 0);
  add.Add("fc2_weight", prefix + "mlp.fc2.weight", {hidden, ffn}, residual, 1);
  add.Add("fc2_bias", prefix + "mlp.fc2.bias", {hidden}, kZeros);
}

// The numbers of the model, and those of the language model that the projector's shape and initial values depend on.
Attributes ConstantsOf(const RadioVitModel& model, const ProjectorTarget& target) {
  Attributes constants = NumbersOf(model);
  constants.erase("layers");  // Module::layers has them
  constants.insert({{"crop", int64_t{*model.positions == "crop"}},
                    {"output.hidden", target.hidden},
                    {"output.init_std", target.init_std},
                    {"output.layers", target.layers}});
  return constants;
}

}  // namespace

void ExpandRadio(const RadioVitModel& model, const ProjectorTarget& target, const std::vector<int64_t>& patches,
                 const std::vector<int>& stages, Module& module) {
  const int64_t hidden = model.hidden, side = model.max_image / model.patch;
  const Init position = Normal(1 / std::sqrt(static_cast<double>(hidden)));
  const std::string generator = "radio_model.model.patch_generator.";
  // With several encoders their parameters would have the same published names.
  const std::string file_prefix = target.several_encoders ? module.name + "." : "";
  module.has_images = true;
  module.constants = ConstantsOf(model, target);
  ParameterBuilder add(module, file_prefix + "vision_model.");
  add.set_trained(module.trains_backbone);

  add.set_frame(module.name + ".embed");
  add.Add("embedder", generator + "embedder.weight", {hidden, 3 * model.patch * model.patch}, Normal(1), 0);
  add.Add("pos_embed", generator + "pos_embed", {1, side * side, hidden}, position);
  add.Add("cls_token", generator + "cls_token.token", {model.class_tokens, hidden}, position);
  int64_t count = add.TakeCount();
  // All blocks are equal, so that one count serves all layers.
  const BlockFlops block = BlockForwardFlops(model, patches);
  for (int64_t i = 0; i < model.layers; ++i) {
    const std::string frame = absl::StrCat(module.name, ".layers.", i);
    add.set_frame(frame);
    add.set_stage(stages[i]);
    AddBlock(model, absl::StrCat("radio_model.model.blocks.", i, "."), add);
    module.layers.push_back({'V', frame, add.TakeCount(), block.forward, stages[i], block.mixing});
    count += module.layers.back().parameters;
  }
  add.set_frame(module.name + ".head");
  add.set_stage(module.grid.pp - 1);
  add.Add("final_norm_weight", "final_norm.weight", {hidden}, kOnes);
  add.Add("final_norm_bias", "final_norm.bias", {hidden}, kZeros);
  module.parameter_count = count + add.TakeCount();

  // The projector. Its published names mlp1.{0,1,3} lack the prefix of the encoder, and its initial values are those of
  // the language model (docs/model/vision_encoder.md#projector).
  const int64_t shuffled = hidden * model.pixel_shuffle * model.pixel_shuffle;
  add.set_file_prefix(file_prefix);
  add.set_trained(module.trains_projection);
  add.Add("proj_norm", "mlp1.0.weight", {shuffled}, kOnes);
  add.Add("proj_up", "mlp1.1.weight", {model.projector_hidden, shuffled}, Normal(target.init_std), 0);
  add.Add("proj_down", "mlp1.3.weight", {target.hidden, model.projector_hidden},
          Normal(target.init_std / std::sqrt(static_cast<double>(target.layers))), 1);
  module.projector_count = add.TakeCount();

  module.embed_flops = EmbedderForwardFlops(model);
  module.head_flops = ProjectorForwardFlops(model, target.hidden);
}

}  // namespace planwright
