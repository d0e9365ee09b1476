#include "planner/plan/earlier_parts.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "planner/plan/plan_json.h"

namespace planwright {
namespace {

bool IsEarlier(const Group& group) {
  using enum Axis;
  struct Kind {
    std::string_view name;
    View view;
    std::vector<Axis> axes;
  };
  static const std::vector<Kind> kinds = {{"dp", View::kDense, {kDp}},
                                          {"mp", View::kDense, {kTp, kPp}},
                                          {"tp_dp", View::kDense, {kTp, kDp}},
                                          {"intra_dist_opt_instance", View::kDense, {kTp, kCp, kDp, kPp}},
                                          {"tp_ep_mp", View::kExpert, {kExpertTp, kEp}},
                                          {"tp_ep_pp", View::kExpert, {kExpertTp, kEp, kPp}}};
  if (group.used() || !group.ranks.empty() || group.name != group.module + "." + group.short_name) return false;
  return std::any_of(kinds.begin(), kinds.end(), [&](const Kind& kind) {
    return group.short_name == kind.name && group.view == kind.view && group.axes == kind.axes;
  });
}

// Drops the gradient that `pre` declares as its own layout. True: it had one.
bool DropGradient(ValueType& pre) {
  if (pre.gradient != pre.layout) return false;
  pre.gradient.reset();
  return true;
}

// `pre` where experts make it, and where a backward takes it.
bool DropGradientsOfPre(Block& block) {
  bool dropped = false;
  for (Instruction& op : block.body) {
    if (op.kind == OpKind::kExperts && op.outputs.size() == 2) dropped |= DropGradient(op.outputs[1].type);
    if (op.kind != OpKind::kExpertsGrad || op.inputs.size() < 4) continue;
    for (Output& take : block.takes) {
      if (take.name == op.inputs[3]) dropped |= DropGradient(take.type);
    }
  }
  return dropped;
}

}  // namespace

void DropEarlierParts(Plan& plan) {
  bool dropped = std::erase_if(plan.groups, IsEarlier) > 0;
  for (Block& block : plan.blocks) dropped |= DropGradientsOfPre(block);
  if (dropped) plan.digest = PlanDigest(plan);
}

}  // namespace planwright
