// V2: groups have ordered, distinct members, unique names, and one creation order on all ranks: the world, then
// modules in the order of the plan, then bridges. Ranks that create communicators in different orders would wait for
// each other.
//
// Not here: that a group is used by all of its members (V3), and that a plan has exactly the groups which its
// modules and bridges need, with the right streams (V11, verify_derived_fields.cc).

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "planner/verify/rules.h"

namespace planwright {
namespace {

// The index of a group's kind in the creation order: 0 for the world, 1 + i for groups of module i, then bridges. -1:
// its module does not exist.
int CreationIndex(const Plan& plan, const Group& group) {
  if (group.name == "world") return 0;
  for (size_t i = 0; i < plan.modules.size(); ++i) {
    if (plan.modules[i].name == group.module) return static_cast<int>(i) + 1;
  }
  return group.module.empty() ? static_cast<int>(plan.modules.size()) + 1 : -1;
}

// Whether the group names axes of its view, each once.
bool AxesFitView(const Group& group) {
  const auto& axes = AxesOf(group.view);
  std::set<Axis> seen;
  return std::all_of(group.axes.begin(), group.axes.end(), [&](Axis axis) {
    return seen.insert(axis).second && std::find(axes.begin(), axes.end(), axis) != axes.end();
  });
}

// What is wrong with an explicit rank list, or "".
std::string RankListProblem(const Plan& plan, const Group& group) {
  if (group.name == "world") return group.ranks.empty() ? "" : "lists ranks, but the world is all of them";
  if (group.ranks.empty()) return "has no member";
  for (size_t i = 0; i < group.ranks.size(); ++i) {
    if (group.ranks[i] < 0 || group.ranks[i] >= plan.world_size)
      return absl::StrCat("has rank ", group.ranks[i], " outside the world");
    if (i > 0 && group.ranks[i] <= group.ranks[i - 1]) return "has members that are not in ascending order";
  }
  return "";
}

}  // namespace

std::vector<Violation> VerifyGroups(const Plan& plan) {
  std::vector<Violation> violations;
  std::set<std::string> names;
  int last = 0;
  const Group* before = nullptr;
  for (const Group& group : plan.groups) {
    const auto fail = [&](const std::string& what) {
      violations.push_back({"V2", absl::StrCat("group ", group.name, " ", what), group.origin});
    };
    if (!names.insert(group.name).second) fail("exists twice");
    const int order = CreationIndex(plan, group);
    if (order < 0) {
      fail(absl::StrCat("belongs to unknown module ", group.module));
      continue;
    }
    if (order < last) {
      // The world has no recipe line, so the violation points at the other group.
      violations.push_back({"V2", absl::StrCat("group ", group.name, " is created out of order, after ", before->name),
                            group.origin >= 0 ? group.origin : before->origin});
    }
    last = order;
    before = &group;
    if (group.module.empty()) {
      if (std::string problem = RankListProblem(plan, group); !problem.empty()) fail(problem);
      continue;
    }
    // The members of a module's group follow from grid, view and axes (planner/plan/axis.h). So they are always ordered
    // and distinct, and only the axes can be wrong.
    if (!AxesFitView(group)) fail("names an axis twice, or an axis that its view does not have");
    if (!group.ranks.empty()) fail("lists ranks beside its axes");
  }
  for (const Bridge& bridge : plan.bridges) {
    if (plan.FindModule(bridge.from) && plan.FindModule(bridge.to)) continue;
    violations.push_back(
        {"V2", absl::StrCat("bridge ", bridge.name, " joins a module that does not exist"), bridge.origin});
  }
  return violations;
}

}  // namespace planwright
