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
};

}  // namespace

const LanguageLayer& AttentionLayer() {
  static const Attention layer;
  return layer;
}

}  // namespace planwright
