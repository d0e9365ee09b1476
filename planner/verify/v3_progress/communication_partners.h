// Which roles meet: in the collectives of a group, between pipeline stages, over a bridge. Settled once for classes of
// ranks, by arithmetic on grids and one walk over each bridge table, so that a proof over roles stands for all ranks
// (docs/progress.md).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

class CommunicationPartners {
 public:
  // Expects what V1 and V2 promise: every rank in one role, groups and bridges whose modules exist.
  explicit CommunicationPartners(const Plan& plan);

  // Who meets in the collectives of one group. Two roles are in one set if some subgroup has a rank of each, or if a
  // chain of such subgroups joins them.
  struct Meetings {
    std::vector<int> set_of_role;        // index in `sets`; -1: no rank of the role is a member
    std::vector<char> whole;             // by role: every rank is a member
    std::vector<std::vector<int>> sets;  // roles, ascending
    int64_t members = 0;                 // of one subgroup
  };
  const Meetings& Of(const Group& group);  // one of the plan's

  // Who is at the other end of a part of an exchange, by role.
  struct Peers {
    std::vector<std::vector<int>> of_role;  // roles, ascending
    std::vector<int> without;               // by role: a rank that has no peer though one is needed, or -1
    std::string problem;                    // not empty: the part makes no sense, in words
  };
  // A bridge part's ranks without a row have nothing to move and need no peer; every rank of a stage part does.
  const Peers& Of(const ExchangePart& part);

  // A rank of `a` and a rank of `b` that meet: in a subgroup, or at the ends of a part of `a`. Their first ranks, if
  // they meet through others only.
  std::pair<int, int> Example(const Group& group, int a, int b) const;
  std::pair<int, int> Example(const ExchangePart& part, int a, int b) const;

  int FirstRank(int role) const;  // -1: a role without ranks, which does nothing

 private:
  Meetings Meet(const Group& group) const;
  bool AllInside(const Role& role, const Grid& grid) const;
  Peers OverBridge(const Bridge& bridge, const ExchangePart& part) const;
  Peers BetweenStages(const Group& group, int shift) const;

  const Plan& plan_;
  std::vector<int> role_of_;                                   // by rank
  std::vector<std::optional<Meetings>> meetings_;              // by group
  std::map<std::pair<std::string, int>, Peers> bridge_peers_;  // bridge, 2 * backward + send
  std::map<std::pair<std::string, int>, Peers> stage_peers_;   // group, shift
};

}  // namespace planwright
