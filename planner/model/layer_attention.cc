// *, causal grouped-query attention (facts 3.4).
#include "planner/model/language_layer.h"
#include "planner/plan/limits.h"

namespace planwright {
namespace {

class Attention : public LanguageLayer {
  void CheckShape(const HybridLmModel& model, SizeChecks& check) const override {
    const auto& attention = model.attention;
    check.Multiple("attention.heads", attention.heads, "kv_groups", attention.kv_groups);
    check.Within("attention heads x head_dim", Product({*attention.heads, *attention.head_dim}), attention.head_dim,
                 kMostTokens);
  }

  double RoughSize(const HybridLmModel& model) const override {
    return 4.0 * Product({*model.hidden, *model.attention.heads, *model.attention.head_dim});
  }

  void CheckLayout(const HybridLmModel& model, const ModuleRecipe& module, SizeChecks& check) const override {
    check.Cut("attention.heads", model.attention.heads, "tp", module.tp);
    check.Cut("attention.kv_groups", model.attention.kv_groups, "tp", module.tp);
  }

  // Stored [all q | all k | all v]: rows grouped per kv head would force a copy of q (facts 3.4 has them grouped in
  // another file format).
  void AddParameters(const HybridLmModel& model, const InitScales& scales, const std::string& prefix,
                     ParameterBuilder& add) const override {
    const auto& attention = model.attention;
    const int64_t q = attention.heads * attention.head_dim, kv = attention.kv_groups * attention.head_dim,
                  hidden = model.hidden;
    add.Add("norm", prefix + "norm.weight", {hidden}, kOnes);
    add.AddJoined("qkv",
                  {{prefix + "mixer.q_proj.weight", {q, hidden}},
                   {prefix + "mixer.k_proj.weight", {kv, hidden}},
                   {prefix + "mixer.v_proj.weight", {kv, hidden}}},
                  scales.input);
    add.Add("o_proj", prefix + "mixer.o_proj.weight", {hidden, q}, scales.residual, 1);
  }

  LayerFlops Flops(const HybridLmModel& model, int64_t sequence) const override {
    const int64_t q = model.attention.heads * model.attention.head_dim,
                  kv = model.attention.kv_groups * model.attention.head_dim;
    const int64_t scores = 2 * sequence * q;
    return {2 * model.hidden * (q + 2 * kv) + 2 * q * model.hidden + scores, scores};
  }
};

}  // namespace

const LanguageLayer& AttentionLayer() {
  static const Attention layer;
  return layer;
}

}  // namespace planwright
