#include "planner/groups/earlier_groups.h"

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

}  // namespace

void DropEarlierGroups(Plan& plan) {
  if (std::erase_if(plan.groups, IsEarlier) > 0) plan.digest = PlanDigest(plan);
}

}  // namespace planwright
