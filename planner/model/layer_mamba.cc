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

  // The rows of in_proj are [z | x | B | C | dt], and each segment is cut by itself (docs/model/mamba.md#storage).
  // Initial values: docs/model/mamba.md#initial-values.
  void AddParameters(const HybridLmModel& model, const InitScales& scales, const std::string& prefix,
                     ParameterBuilder& add) const override {
    const auto& mamba = model.mamba;
    const int64_t inner = mamba.heads * mamba.head_dim, bc = mamba.groups * mamba.state, heads = mamba.heads;
    const int64_t hidden = model.hidden, conv = mamba.conv;
    add.Add("norm", prefix + "norm.weight", {hidden}, kOnes);
    add.Add("in_proj", prefix + "mixer.in_proj.weight", {2 * inner + 2 * bc + heads, hidden}, scales.input, 0,
            {inner, inner, bc, bc, heads});
    // PyTorch's default for a convolution whose channels are separate: uniform within 1 / sqrt(width)
    const Init conv_bound = {Init::Kind::kUniform, -1 / std::sqrt(static_cast<double>(conv)),
                             1 / std::sqrt(static_cast<double>(conv))};
    add.Add("conv_weight", prefix + "mixer.conv1d.weight", {inner + 2 * bc, 1, conv}, conv_bound, 0, {inner, bc, bc});
    add.Add("conv_bias", prefix + "mixer.conv1d.bias", {inner + 2 * bc}, conv_bound, 0, {inner, bc, bc});
    add.Add("A_log", prefix + "mixer.A_log", {heads}, {Init::Kind::kLogUniform, 1, 16}, 0);
    add.Add("D", prefix + "mixer.D", {heads}, kOnes, 0);
    add.Add("dt_bias", prefix + "mixer.dt_bias", {heads}, {Init::Kind::kDtBias, 0.001, 0.1}, 0);
    add.Add("mixer_norm", prefix + "mixer.norm.weight", {inner}, kOnes, 0);
    add.Add("out_proj", prefix + "mixer.out_proj.weight", {hidden, inner}, scales.residual, 1);
  }

  LayerFlops Flops(const HybridLmModel& model, int64_t) const override {
    const auto& mamba = model.mamba;
    const int64_t inner = mamba.heads * mamba.head_dim, bc = mamba.groups * mamba.state;
    // both projections and the scan (docs/flops.md); convolution and gated norm are small
    const int64_t in_rows = 2 * inner + 2 * bc + mamba.heads, scan = 7 * inner * mamba.state;
    return {2 * model.hidden * in_rows + 2 * inner * model.hidden + scan, scan};
  }
};

}  // namespace

const LanguageLayer& MambaLayer() {
  static const Mamba layer;
  return layer;
}

}  // namespace planwright
