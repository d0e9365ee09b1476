// `M`: a Mamba-2 mixer (docs/model/mamba.md#forward).
#include <algorithm>
#include <cmath>

#include "planner/model/language_layer.h"
#include "planner/plan/limits.h"

namespace planwright {
namespace {

class Mamba : public LanguageLayer {
  void CheckShape(const HybridLmModel& model, SizeChecks& check) const override {
    const auto& mamba = model.mamba;
    check.Multiple("mamba.heads", mamba.heads, "groups", mamba.groups);
    const double inner = Product({*mamba.heads, *mamba.head_dim});
    check.Within("mamba heads x head_dim", inner, mamba.head_dim, kMostTokens);
    // These products are dims of tensors or sizes of states: they must stay within the limits of a plan.
    check.Within("mamba groups x state", Product({*mamba.groups, *mamba.state}), mamba.state, kMostTokens);
    check.Within("mamba heads x head_dim x state", inner * static_cast<double>(*mamba.state), mamba.state,
                 static_cast<double>(kLargestDim));
  }

  double RoughSize(const HybridLmModel& model) const override {
    const auto& mamba = model.mamba;
    const double inner = Product({*mamba.heads, *mamba.head_dim}), states = Product({*mamba.groups, *mamba.state});
    return (3 * inner + 2 * states) * static_cast<double>(std::max(*model.hidden, *mamba.conv));
  }

  // The convolution and the scan need the whole sequence. So between the two projections cp cuts heads instead of the
  // sequence, and heads and groups must be multiples of tp x cp.
  void CheckLayout(const HybridLmModel& model, const ModuleRecipe& module, SizeChecks& check) const override {
    const bool cp = *module.cp > 1;
    const Located<int64_t> parts(*module.tp * *module.cp, cp ? module.cp.where : module.tp.where);
    check.Cut("mamba.heads", model.mamba.heads, cp ? "tp x cp" : "tp", parts);
    check.Cut("mamba.groups", model.mamba.groups, cp ? "tp x cp" : "tp", parts);
  }
};

}  // namespace

const LanguageLayer& MambaLayer() {
  static const Mamba layer;
  return layer;
}

}  // namespace planwright
