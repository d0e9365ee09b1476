#include "planner/compile/model/checkpoint_rules.h"

#include <map>
#include <tuple>

#include "planner/plan/optimizer_states.h"
#include "planner/plan/precision.h"

namespace planwright {
namespace {

// Parameters with equal ParameterKind are cut in the same way and have the same states, so that one rule covers them.
struct ParameterKind {
  int stage = 0;
  View view = View::kDense;
  bool cut = false;  // along tp or expert_tp
  bool trained = false;
  auto operator<=>(const ParameterKind&) const = default;
};

CheckpointRule RuleOf(const Module& module, const OptimizerPlan& optimizer, DType dtype, const ParameterKind& kind) {
  CheckpointRule rule;
  rule.module = module.name;
  rule.view = kind.view;
  rule.stage = kind.stage;
  // Along a cut axis each rank writes its part; along a replicated axis one rank writes for all.
  const bool expert = kind.view == View::kExpert;
  for (Axis axis : AxesOf(kind.view)) {
    if (axis == Axis::kPp) continue;  // a rule is about one stage
    const bool tensor = axis == Axis::kTp || axis == Axis::kExpertTp;
    const bool cut = axis == Axis::kEp || (tensor && kind.cut);
    (cut ? rule.cut : rule.replicated).push_back(axis);
  }
  rule.kept = kind.trained || !module.adapted();
  if (kind.trained) {
    for (std::string_view state : HeldStates(optimizer, dtype, MasterOf(dtype))) rule.states.emplace_back(state);
    // The optimizer's states are sharded over the ranks that share the gradient: the axes of the bucket's reduce group.
    rule.flat = expert ? std::vector{Axis::kExpertDp} : std::vector{Axis::kCp, Axis::kDp};
  }
  return rule;
}

}  // namespace

CheckpointPlan CheckpointOf(const std::vector<Module>& modules, const OptimizerPlan& optimizer, DType dtype,
                            const CheckpointRecipe& recipe) {
  CheckpointPlan checkpoint;
  checkpoint.every_steps = recipe.every_steps.value_or(0);
  checkpoint.keep_last = recipe.keep_last.value_or(0);
  checkpoint.keep_every_steps = recipe.keep_every_steps.value_or(0);
  if (recipe.keep_best) checkpoint.keep_best = **recipe.keep_best;
  // applied_steps is AdamW's own counter, which skipped steps do not advance. Samples are numbered through windows and
  // epochs, so consumed_samples is the position in the data.
  checkpoint.common = {"common.step", "common.applied_steps", "common.skipped_steps", "common.consumed_samples"};
  for (const Module& module : modules) {
    std::map<ParameterKind, std::vector<int>> kinds;
    for (const Storage& storage : module.storages) {
      for (int index : storage.parameters) {
        const Parameter& parameter = module.parameters[index];
        const View view = parameter.experts > 0 ? View::kExpert : View::kDense;
        kinds[{storage.stage, view, parameter.shard_dim >= 0, parameter.trained && !parameter.buffer}].push_back(index);
      }
    }
    for (const auto& [kind, indices] : kinds) {
      CheckpointRule& rule = checkpoint.rules.emplace_back(RuleOf(module, optimizer, dtype, kind));
      rule.parameters = Compress(indices);
    }
  }
  return checkpoint;
}

}  // namespace planwright
