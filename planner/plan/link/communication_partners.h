// Which roles meet: in the collectives of a group, between pipeline stages, and over a bridge. This is found for roles,
// not for ranks, by arithmetic on grids and one walk over each bridge table. It is step C1 of the proof
// (docs/progress.md#what-is-proved).
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
  // Keeps a reference: the plan must outlive it. V1 and V2 must hold: every rank is in one role, and the modules of
  // groups and bridges exist.
  explicit CommunicationPartners(const Plan& plan) : CommunicationPartners(plan, plan.roles) {}
  // With other roles than the plan's, of which only their ranks are read. Keeps references to both.
  CommunicationPartners(const Plan& plan, const std::vector<Role>& roles);

  // Who meets in the collectives of one group. Two roles are in one set if some subgroup has a rank of each, or if a
  // chain of such subgroups joins them.
  struct Meetings {
    std::vector<int> set_of_role;        // index in `sets`; -1: no rank of the role is a member
    std::vector<char> all_members;       // by role: whether every rank of it is a member
    std::vector<std::vector<int>> sets;  // roles, ascending
    int64_t members = 0;                 // of one subgroup
  };
  const Meetings& MeetingsOf(const Group& group);  // one of the plan's groups

  // Which roles are at the other end of a part of an exchange, by role.
  struct Peers {
    std::vector<std::vector<int>> of_role;  // roles, ascending
    std::vector<int> rank_without_peer;     // by role: a rank that needs a peer and has none; -1: no such rank
    std::string problem;                    // not empty: the part can meet nobody; what is wrong with it
  };
  // Every rank that runs a stage part needs a peer. A rank without a row of the bridge moves nothing and needs none.
  const Peers& PeersOf(const ExchangePart& part);

  // For messages: a rank of role `a` and a rank of role `b` that meet, in a subgroup or at the two ends of a part of
  // `a`. If they do not meet directly: their first ranks.
  std::pair<int, int> ExampleRanks(const Group& group, int a, int b) const;
  std::pair<int, int> ExampleRanks(const ExchangePart& part, int a, int b) const;

  int FirstRank(int role) const;  // -1: the role has no ranks

 private:
  Meetings FindMeetings(const Group& group) const;
  bool AllInside(const Role& role, const Grid& grid) const;
  Peers PeersOverBridge(const Bridge& bridge, const ExchangePart& part) const;
  Peers PeersBetweenStages(const Group& group, int shift) const;

  const Plan& plan_;
  const std::vector<Role>& roles_;
  std::vector<int> role_of_;                                   // by rank; -1: no role
  std::vector<std::optional<Meetings>> meetings_;              // by group
  std::map<std::pair<std::string, int>, Peers> bridge_peers_;  // bridge, 2 * backward + send
  std::map<std::pair<std::string, int>, Peers> stage_peers_;   // group, shift
};

}  // namespace planwright
