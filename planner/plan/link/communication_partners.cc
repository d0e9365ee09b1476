#include "planner/plan/link/communication_partners.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"

namespace planwright {
namespace {

using std::string;

// A set of pairs of roles. A hundred thousand ranks add the same few pairs again and again, so a small cache of recent
// pairs saves most look-ups in the set.
class RolePairs {
 public:
  void Add(int a, int b) {
    const std::pair pair(a, b);
    std::pair<int, int>& last = recent_[(static_cast<unsigned>(a) * 37 + static_cast<unsigned>(b)) % recent_.size()];
    if (last == pair) return;
    last = pair;
    pairs_.insert(pair);
  }
  const std::set<std::pair<int, int>>& all() const { return pairs_; }

  // By first role, the second roles; `swapped`: by second role, the first ones. Ascending.
  std::vector<std::vector<int>> Lists(size_t roles, bool swapped) const {
    std::vector<std::vector<int>> lists(roles);
    for (const auto& [a, b] : pairs_) swapped ? lists[b].push_back(a) : lists[a].push_back(b);
    return lists;
  }

 private:
  using Recent = std::array<std::pair<int, int>, 256>;
  static Recent NoPairs() {
    Recent none;
    none.fill({-1, -1});
    return none;
  }

  Recent recent_ = NoPairs();
  std::set<std::pair<int, int>> pairs_;
};

// The representative of a role's set (union-find, with path halving).
int SetRoot(std::vector<int>& parent, int role) {
  while (parent[role] != role) role = parent[role] = parent[parent[role]];
  return role;
}

// Calls visit(rank, first rank of its subgroup) for every rank of the grid, ascending. The first rank of a subgroup has
// coordinate 0 along the group's axes and the rank's own coordinates along the others.
template <typename Visit>
void ForEachRank(const Grid& grid, const Group& group, Visit visit) {
  std::array<int, 4> size;
  std::array<int, 4> outside_stride;  // 0 for the group's axes; for the others the stride of the axis
  int stride = 1;
  for (size_t i = 0; i < size.size(); ++i) {
    const Axis axis = AxesOf(group.view)[i];
    const bool inside = std::find(group.axes.begin(), group.axes.end(), axis) != group.axes.end();
    size[i] = grid.size(axis);
    outside_stride[i] = inside ? 0 : stride;
    stride *= size[i];
  }
  int rank = grid.first_rank;
  for (int d = 0; d < size[3]; ++d) {
    for (int c = 0; c < size[2]; ++c) {
      for (int b = 0; b < size[1]; ++b) {
        const int first = grid.first_rank + d * outside_stride[3] + c * outside_stride[2] + b * outside_stride[1];
        for (int a = 0; a < size[0]; ++a) visit(rank++, first + a * outside_stride[0]);
      }
    }
  }
}

}  // namespace

CommunicationPartners::CommunicationPartners(const Plan& plan, const std::vector<Role>& roles)
    : plan_(plan), roles_(roles), role_of_(plan.world_size, -1), meetings_(plan.groups.size()) {
  for (size_t role = 0; role < roles.size(); ++role) {
    for (const RankRange& range : roles[role].ranks) {
      for (int i = 0, rank = range.first; i < range.count; ++i, rank += range.stride) {
        if (rank >= 0 && rank < plan.world_size) role_of_[rank] = static_cast<int>(role);
      }
    }
  }
}

int CommunicationPartners::FirstRank(int role) const {
  const auto& ranges = roles_[role].ranks;
  return ranges.empty() ? -1 : ranges.front().first;
}

// Ranks of a grid are consecutive, so a range is inside if its two ends are.
bool CommunicationPartners::AllInside(const Role& role, const Grid& grid) const {
  return std::all_of(role.ranks.begin(), role.ranks.end(), [&](const RankRange& range) {
    return grid.contains(range.first) && grid.contains(range.first + (range.count - 1) * range.stride);
  });
}

const CommunicationPartners::Meetings& CommunicationPartners::MeetingsOf(const Group& group) {
  std::optional<Meetings>& meetings = meetings_[&group - plan_.groups.data()];
  if (!meetings) meetings = FindMeetings(group);
  return *meetings;
}

CommunicationPartners::Meetings CommunicationPartners::FindMeetings(const Group& group) const {
  const size_t roles = roles_.size();
  // For each member: the role of the first rank of its subgroup, and its own role. Joining these pairs joins all roles
  // of a subgroup.
  RolePairs pairs;
  Meetings meetings;
  meetings.all_members.assign(roles, true);
  if (const Module* module = plan_.FindModule(group.module)) {
    meetings.members = module->grid.size(group.axes);
    ForEachRank(module->grid, group, [&](int rank, int first) {
      if (role_of_[rank] >= 0 && role_of_[first] >= 0) pairs.Add(role_of_[first], role_of_[rank]);
    });
    for (size_t role = 0; role < roles; ++role) meetings.all_members[role] = AllInside(roles_[role], module->grid);
  } else if (group.name == "world") {  // one subgroup, which starts with rank 0
    meetings.members = plan_.world_size;
    for (size_t role = 0; role < roles; ++role) {
      if (FirstRank(static_cast<int>(role)) >= 0) pairs.Add(role_of_[0], static_cast<int>(role));
    }
  } else {                                   // the group of a bridge, which lists its members
    std::vector<int64_t> missing(roles, 0);  // by role: ranks that the member list lacks
    for (size_t role = 0; role < roles; ++role) {
      for (const RankRange& range : roles_[role].ranks) missing[role] += range.count;
    }
    for (int rank : group.ranks) {
      pairs.Add(role_of_[group.ranks.front()], role_of_[rank]);
      --missing[role_of_[rank]];
    }
    meetings.members = static_cast<int64_t>(group.ranks.size());
    for (size_t role = 0; role < roles; ++role) meetings.all_members[role] = missing[role] == 0;
  }
  // Union-find over the pairs gives the sets. They are numbered by their first role.
  std::vector<int> parent(roles);
  std::iota(parent.begin(), parent.end(), 0);
  std::vector<char> member(roles, false);
  for (const auto& [a, b] : pairs.all()) {
    member[a] = member[b] = true;
    parent[SetRoot(parent, a)] = SetRoot(parent, b);
  }
  meetings.set_of_role.assign(roles, -1);
  std::map<int, int> sets;
  for (size_t role = 0; role < roles; ++role) {
    if (!member[role]) continue;
    const auto [it, fresh] =
        sets.emplace(SetRoot(parent, static_cast<int>(role)), static_cast<int>(meetings.sets.size()));
    if (fresh) meetings.sets.emplace_back();
    meetings.sets[it->second].push_back(static_cast<int>(role));
    meetings.set_of_role[role] = it->second;
  }
  return meetings;
}

const CommunicationPartners::Peers& CommunicationPartners::PeersOf(const ExchangePart& part) {
  // All parts with the same bridge, direction and side have the same peers, and so have all with the same group and
  // shift.
  const bool bridged = !part.bridge.empty();
  const std::pair<string, int> key =
      bridged ? std::pair(part.bridge, 2 * part.backward + part.send) : std::pair(part.group, part.shift);
  std::map<std::pair<string, int>, Peers>& known = bridged ? bridge_peers_ : stage_peers_;
  if (const auto found = known.find(key); found != known.end()) return found->second;
  Peers peers;
  if (bridged) {
    const Bridge* bridge = plan_.FindBridge(part.bridge);
    if (bridge) peers = PeersOverBridge(*bridge, part);
    if (!bridge) peers.problem = absl::StrCat("names bridge ", part.bridge, ", which does not exist");
  } else {
    const Group* group = plan_.FindGroup(part.group);
    if (group) peers = PeersBetweenStages(*group, part.shift);
    if (!group) peers.problem = absl::StrCat("names group ", part.group, ", which does not exist");
  }
  return known.emplace(key, std::move(peers)).first->second;
}

CommunicationPartners::Peers CommunicationPartners::PeersOverBridge(const Bridge& bridge,
                                                                    const ExchangePart& part) const {
  Peers peers;
  const Group* group = plan_.FindGroup(bridge.name);
  if (!group || !group->used()) {
    peers.problem = absl::StrCat("moves rows over ", bridge.name, ", which has no communicator");
    return peers;
  }
  std::vector<char> connected(plan_.world_size, false);  // by rank: in the bridge's communicator
  for (int rank : group->ranks) connected[rank] = true;
  RolePairs pairs;
  for (const Transfer& row : part.backward ? bridge.backward : bridge.forward) {
    for (int rank : {row.from_rank, row.to_rank}) {
      if (rank >= 0 && rank < plan_.world_size && connected[rank] && role_of_[rank] >= 0) continue;
      peers.problem = absl::StrCat("moves rows over ", bridge.name, ", whose table names rank ", rank,
                                   ", which is not in its communicator");
      return peers;
    }
    pairs.Add(role_of_[row.from_rank], role_of_[row.to_rank]);
  }
  peers.of_role = pairs.Lists(roles_.size(), !part.send);
  peers.rank_without_peer.assign(roles_.size(), -1);
  return peers;
}

CommunicationPartners::Peers CommunicationPartners::PeersBetweenStages(const Group& group, int shift) const {
  Peers peers;
  const Module* module = plan_.FindModule(group.module);
  if (!module || group.axes.size() != 1 || shift == 0 || !group.used()) {
    peers.problem = absl::StrCat("moves a value by ", shift, " over group ", group.name,
                                 ", which is no line of stages with a communicator");
    return peers;
  }
  const Grid& grid = module->grid;
  int stride = 1;
  for (Axis axis : AxesOf(group.view)) {
    if (axis == group.axes.front()) break;
    stride *= grid.size(axis);
  }
  const int size = grid.size(group.axes.front());
  // Ranks with consecutive numbers: `stride` ranks have one coordinate along the axis, and stride * size of them make a
  // block in which the coordinate goes from 0 to size - 1. A peer has the same offset inside its stride.
  RolePairs pairs;
  peers.rank_without_peer.assign(roles_.size(), -1);
  for (int block = grid.first_rank; block < grid.first_rank + grid.ranks(); block += stride * size) {
    for (int coordinate = 0; coordinate < size; ++coordinate) {
      const bool reaches = coordinate + shift >= 0 && coordinate + shift < size;
      for (int rank = block + coordinate * stride; rank < block + (coordinate + 1) * stride; ++rank) {
        const int role = role_of_[rank], peer = reaches ? role_of_[rank + shift * stride] : -1;
        if (role < 0) continue;
        if (peer < 0) peers.rank_without_peer[role] = rank;
        if (peer >= 0) pairs.Add(role, peer);
      }
    }
  }
  // Ranks outside the module's grid have no stage at all.
  for (size_t role = 0; role < roles_.size(); ++role) {
    if (!AllInside(roles_[role], grid)) peers.rank_without_peer[role] = FirstRank(static_cast<int>(role));
  }
  peers.of_role = pairs.Lists(roles_.size(), false);
  return peers;
}

std::pair<int, int> CommunicationPartners::ExampleRanks(const Group& group, int a, int b) const {
  std::pair<int, int> example = {FirstRank(a), FirstRank(b)};
  const Module* module = plan_.FindModule(group.module);
  if (!module) return example;
  std::map<int, int> seen_a, seen_b;  // by first rank of a subgroup: a rank of the role in it
  bool found = false;                 // a subgroup with a rank of each role
  ForEachRank(module->grid, group, [&](int rank, int first) {
    if (found) return;
    if (role_of_[rank] == a) seen_a.emplace(first, rank);
    if (role_of_[rank] == b) seen_b.emplace(first, rank);
    const auto at_a = seen_a.find(first), at_b = seen_b.find(first);
    found = at_a != seen_a.end() && at_b != seen_b.end();
    if (found) example = {at_a->second, at_b->second};
  });
  return example;
}

std::pair<int, int> CommunicationPartners::ExampleRanks(const ExchangePart& part, int a, int b) const {
  if (const Bridge* bridge = plan_.FindBridge(part.bridge)) {
    for (const Transfer& row : part.backward ? bridge->backward : bridge->forward) {
      const int mine = part.send ? row.from_rank : row.to_rank, theirs = part.send ? row.to_rank : row.from_rank;
      if (role_of_[mine] == a && role_of_[theirs] == b) return {mine, theirs};
    }
    return {FirstRank(a), FirstRank(b)};
  }
  const Group* group = plan_.FindGroup(part.group);
  const Module* module = group ? plan_.FindModule(group->module) : nullptr;
  if (!module) return {FirstRank(a), FirstRank(b)};
  for (int rank = module->grid.first_rank; rank < module->grid.first_rank + module->grid.ranks(); ++rank) {
    if (role_of_[rank] != a) continue;
    const std::vector<int> line = GroupOf(module->grid, group->view, group->axes, rank);
    const int index = IndexInGroup(module->grid, group->view, group->axes, rank) + part.shift;
    if (index >= 0 && index < static_cast<int>(line.size()) && role_of_[line[index]] == b) return {rank, line[index]};
  }
  return {FirstRank(a), FirstRank(b)};
}

}  // namespace planwright
