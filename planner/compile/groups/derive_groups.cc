#include "planner/compile/groups/derive_groups.h"

#include <map>
#include <set>
#include <string>
#include <utility>

namespace planwright {
namespace {

// One row of the table: a group is the ranks that differ only along `axes`.
struct GroupKind {
  const char* name;
  View view;
  std::vector<Axis> axes;
};

// A kind is here because some program communicates over it (docs/layouts/grids.md#groups). Names as in Megatron, so
// that its users find their groups.
const std::vector<GroupKind>& GroupKinds() {
  using enum Axis;
  constexpr View kDense = View::kDense, kExpert = View::kExpert;
  static const std::vector<GroupKind> kinds = {
      {"tp", kDense, {kTp}},         {"cp", kDense, {kCp}},           {"pp", kDense, {kPp}},
      {"dp_cp", kDense, {kDp, kCp}}, {"tp_cp", kDense, {kTp, kCp}},   {"tp_dp_cp", kDense, {kTp, kDp, kCp}},
      {"ep", kExpert, {kEp}},        {"ep_tp", kExpert, {kExpertTp}}, {"ep_dp", kExpert, {kExpertDp}},
  };
  return kinds;
}

Group GroupOfBridge(const Bridge& bridge) {
  // By rank, not a set: a bridge has up to hundreds of thousands of transfers.
  std::vector<bool> member;
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
  return {.name = bridge.name, .short_name = "bridge", .ranks = std::move(ranks), .origin = bridge.origin};
}

// By group name: the streams on which some instruction communicates over it.
std::map<std::string, std::set<std::string>> StreamsByGroup(const std::vector<Block>& blocks,
                                                            const std::vector<Role>& roles) {
  std::map<std::string, std::set<std::string>> streams;
  const auto scan = [&](const std::vector<Instruction>& body) {
    for (const Instruction& instruction : body) {
      streams[instruction.group].insert(instruction.stream);
      for (const ExchangePart& part : instruction.parts)
        streams[part.bridge.empty() ? part.group : part.bridge].insert(instruction.stream);
    }
  };
  for (const Block& block : blocks) scan(block.body);
  for (const Role& role : roles) {
    for (const RoleList& part : kRoleLists) scan(role.*part.list);
  }
  return streams;
}

}  // namespace

std::vector<Group> DeriveGroups(const std::vector<Module>& modules, const std::vector<Bridge>& bridges,
                                const std::vector<Block>& blocks, const std::vector<Role>& roles) {
  std::vector<Group> groups = {{.name = "world", .short_name = "world"}};  // every rank: no list of them
  for (const Module& module : modules) {
    for (const GroupKind& kind : GroupKinds()) {
      groups.push_back({.name = module.name + "." + kind.name,
                        .short_name = kind.name,
                        .module = module.name,
                        .view = kind.view,
                        .axes = kind.axes,
                        .origin = module.origin});
    }
  }
  for (const Bridge& bridge : bridges) groups.push_back(GroupOfBridge(bridge));
  // A group on several streams becomes several communicators, so that they do not wait for each other.
  const std::map<std::string, std::set<std::string>> streams = StreamsByGroup(blocks, roles);
  for (Group& group : groups) {
    if (const auto found = streams.find(group.name); found != streams.end())
      group.streams.assign(found->second.begin(), found->second.end());
  }
  return groups;
}

}  // namespace planwright
