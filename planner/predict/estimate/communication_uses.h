// Where the members of a communication are, and what passes over a bridge, as one rank sees it: what its time depends
// on (docs/step_time.md#rates).
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/predict/rates/rates.h"

namespace planwright {

struct Members {
  int all = 1, on_fullest_node = 1, nodes = 1;
};

// Of ranks that ascend, on nodes of so many GPUs.
Members MembersAmong(const std::vector<int>& ranks, int gpus_per_node);

// The samples of a microbatch that a rank sends to and receives from other ranks.
struct Crossing {
  int64_t sent = 0, received = 0;
  int64_t busiest = 0;       // the most that it, or a rank with which it exchanges some, sends or receives in all
  bool leaves_node = false;  // some of them
};

// Answers for a few ranks; each is found once. Keeps a reference: the plan must outlive it.
class CommunicationUses {
 public:
  explicit CommunicationUses(const Plan& plan) : plan_(plan) {}

  // The subgroup of `rank` in a group of the plan (its index).
  const Members& MembersOf(int group, int rank);
  // Over a bridge of the plan (its index), in one direction.
  const Crossing& CrossingOf(int bridge, bool backward, int rank);
  bool SameNode(int a, int b) const;

 private:
  // What each rank sends and receives over a bridge in one direction.
  struct Load {
    int64_t sent = 0, received = 0;
  };
  Members FindMembers(const Group& group, int rank) const;
  const std::map<int, Load>& LoadsOf(int bridge, bool backward);  // by rank

  const Plan& plan_;
  std::map<std::pair<int, int>, Members> members_;             // by group and rank
  std::map<std::pair<int, bool>, std::map<int, Load>> loads_;  // by bridge and direction
  std::map<std::tuple<int, bool, int>, Crossing> crossings_;   // by bridge, direction and rank
};

}  // namespace planwright
