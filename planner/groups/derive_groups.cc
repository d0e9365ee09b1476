#include "planner/groups/derive_groups.h"

#include <numeric>
#include <utility>

#include "planner/diagnostics/bug.h"

namespace planwright {
namespace {

struct GroupKind {
  const char* name;
  View view;
  std::vector<Axis> axes;
};

const std::vector<GroupKind>& GroupKinds() {
  using enum Axis;
  constexpr View kDense = View::kDense, kExpert = View::kExpert;
  static const std::vector<GroupKind> kinds = {
      {"tp", kDense, {kTp}},
      {"cp", kDense, {kCp}},
      {"pp", kDense, {kPp}},
      {"dp", kDense, {kDp}},
      {"dp_cp", kDense, {kDp, kCp}},
      {"tp_cp", kDense, {kTp, kCp}},
      {"mp", kDense, {kTp, kPp}},
      {"tp_dp", kDense, {kTp, kDp}},
      {"tp_dp_cp", kDense, {kTp, kDp, kCp}},
      {"intra_dist_opt_instance", kDense, {kTp, kCp, kDp, kPp}},
      {"ep", kExpert, {kEp}},
      {"ep_tp", kExpert, {kExpertTp}},
      {"ep_dp", kExpert, {kExpertDp}},
      {"tp_ep_mp", kExpert, {kExpertTp, kEp}},
      {"tp_ep_pp", kExpert, {kExpertTp, kEp, kPp}},
  };
  return kinds;
}

Group OfBridge(const Bridge& bridge) {
  std::vector<bool> member;  // by rank
  for (const auto* transfers : {&bridge.forward, &bridge.backward}) {
    for (const Transfer& transfer : *transfers) {
      for (int rank : {transfer.from_rank, transfer.to_rank}) {
        if (rank >= static_cast<int>(member.size())) member.resize(rank + 1);
        member[rank] = true;
      }
    }
  }
  std::vector<int> ranks;
  for (size_t rank = 0; rank < member.size(); ++rank) {
    if (member[rank]) ranks.push_back(static_cast<int>(rank));
  }
  return {.name = bridge.name, .short_name = "bridge", .ranks = std::move(ranks)};
}

}  // namespace

std::vector<Group> DeriveGroups(const std::vector<ModuleRecipe>& modules, const std::vector<Grid>& grids,
                                const std::vector<Bridge>& bridges) {
  Require(modules.size() == grids.size(), "one grid per module");
  std::vector<Group> groups = {{.name = "world", .short_name = "world"}};  // every rank: no list of them
  for (const ModuleRecipe& module : modules) {
    for (const GroupKind& kind : GroupKinds()) {
      groups.push_back({.name = *module.name + "." + kind.name,
                        .short_name = kind.name,
                        .module = *module.name,
                        .view = kind.view,
                        .axes = kind.axes});
    }
  }
  for (const Bridge& bridge : bridges) groups.push_back(OfBridge(bridge));
  return groups;
}

}  // namespace planwright
