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
};

}  // namespace

const LanguageLayer& MoeLayer() {
  static const Moe layer;
  return layer;
}

}  // namespace planwright
