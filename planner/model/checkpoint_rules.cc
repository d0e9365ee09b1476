#include "planner/model/checkpoint_rules.h"

#include <map>
#include <tuple>

#include "planner/plan/optimizer_states.h"
#include "planner/plan/precision.h"

namespace planwright {
namespace {

// Parameters that are cut and written alike.
struct Kind {
  int stage = 0;
  View view = View::kDense;
  bool cut = false;  // along tp or expert_tp
  bool trained = false;
  auto operator<=>(const Kind&) const = default;
};

CheckpointRule RuleOf(const Module& module, const OptimizerPlan& optimizer, DType dtype, const Kind& kind) {
  CheckpointRule rule;
  rule.module = module.name;
  rule.view = kind.view;
  rule.stage = kind.stage;
  const bool expert = kind.view == View::kExpert;
  for (Axis axis : AxesOf(kind.view)) {
    if (axis == Axis::kPp) continue;
    const bool tensor = axis == Axis::kTp || axis == Axis::kExpertTp;
    const bool cut = axis == Axis::kEp || (tensor && kind.cut);
    (cut ? rule.cut : rule.replicated).push_back(axis);
  }
  if (kind.trained) {
    for (std::string_view state : HeldStates(optimizer, dtype, MasterOf(dtype))) rule.states.emplace_back(state);
    rule.flat = expert ? std::vector{Axis::kExpertDp} : std::vector{Axis::kCp, Axis::kDp};
  }
  return rule;
}

}  // namespace

CheckpointPlan CheckpointOf(const std::vector<Module>& modules, const OptimizerPlan& optimizer, DType dtype,
                            int64_t every_steps) {
  CheckpointPlan checkpoint;
  checkpoint.every_steps = every_steps;
  // The applied steps are AdamW's own counter: skipped steps do not move it. Samples and the place in the data follow
  // from the step and are kept so that a reader can check them.
  checkpoint.common = {"common.step", "common.applied_steps", "common.consumed_samples", "common.data_position"};
  for (const Module& module : modules) {
    std::map<Kind, std::vector<int>> kinds;
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
