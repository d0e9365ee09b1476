// `E`: a mixture of experts with one shared expert (docs/model/mixture_of_experts.md).
#include "planner/model/language_layer.h"

namespace planwright {
namespace {

class Moe : public LanguageLayer {
  void CheckShape(const HybridLmModel& model, SizeChecks& check) const override {
    check.AtMost("moe.top_k", model.moe.top_k, "experts", model.moe.experts);
  }

  // Two matrices for each expert.
  double RoughSize(const HybridLmModel& model) const override {
    const auto& moe = model.moe;
    return 2.0 * (Product({*model.hidden, *moe.experts, *moe.ffn}) + Product({*model.hidden, *moe.shared_ffn}));
  }

  // Experts are divided over ep and cut over expert_tp; the shared expert is dense and cut over tp.
  void CheckLayout(const HybridLmModel& model, const ModuleRecipe& module, SizeChecks& check) const override {
    check.Cut("moe.experts", model.moe.experts, "ep", module.ep);
    check.Cut("moe.shared_ffn", model.moe.shared_ffn, "tp", module.tp);
    check.Cut("moe.ffn", model.moe.ffn, "expert_tp", module.expert_tp);
  }

  void AddParameters(const HybridLmModel& model, const InitScales& scales, const std::string& prefix,
                     ParameterBuilder& add) const override {
    const auto& moe = model.moe;
    const int64_t hidden = model.hidden;
    // The router (gate) is not cut: every rank scores its tokens for all experts. Its bias is a buffer, because not the
    // optimizer but the load of the experts moves it (docs/model/mixture_of_experts.md#expert-bias).
    add.Add("norm", prefix + "norm.weight", {hidden}, kOnes);
    add.Add("gate", prefix + "mixer.gate.weight", {moe.experts, hidden}, scales.input);
    add.AddBuffer("gate_bias", prefix + "mixer.gate.e_score_correction_bias", {moe.experts});
    add.AddExperts("up", prefix + "mixer.experts.{expert}.up_proj.weight", moe.experts, {moe.ffn, hidden}, scales.input,
                   0);
    add.AddExperts("down", prefix + "mixer.experts.{expert}.down_proj.weight", moe.experts, {hidden, moe.ffn},
                   scales.residual, 1);
    add.Add("shared_up", prefix + "mixer.shared_experts.up_proj.weight", {moe.shared_ffn, hidden}, scales.input, 0);
    add.Add("shared_down", prefix + "mixer.shared_experts.down_proj.weight", {hidden, moe.shared_ffn}, scales.residual,
            1);
  }

  LayerFlops Flops(const HybridLmModel& model, int64_t) const override {
    const auto& moe = model.moe;
    // router, routed experts of a token, shared expert; an expert has two matrices
    return {2 * model.hidden * moe.experts + moe.top_k * 4 * model.hidden * moe.ffn + 4 * model.hidden * moe.shared_ffn,
            0};
  }
};

}  // namespace

const LanguageLayer& MoeLayer() {
  static const Moe layer;
  return layer;
}

}  // namespace planwright
