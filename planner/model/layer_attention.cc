// `*`: causal grouped-query attention (docs/model/attention.md#forward).
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

  // q and o have heads x head_dim rows; k and v have at most as many.
  double RoughSize(const HybridLmModel& model) const override {
    return 4.0 * Product({*model.hidden, *model.attention.heads, *model.attention.head_dim});
  }

  // tp cuts whole heads, so that a rank needs no other rank's keys and values.
  void CheckLayout(const HybridLmModel& model, const ModuleRecipe& module, SizeChecks& check) const override {
    check.Cut("attention.heads", model.attention.heads, "tp", module.tp);
    check.Cut("attention.kv_groups", model.attention.kv_groups, "tp", module.tp);
  }

  // The storage is [all q | all k | all v] (docs/model/attention.md#storage). If rows were grouped by kv head instead,
  // q would not be contiguous in the output of the product and would have to be copied.
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
    // 4 x sequence x q for both products of the whole score matrix; causal: half of it
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
