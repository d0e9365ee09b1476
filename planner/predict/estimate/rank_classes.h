// Ranks that take the same time: those of a role, or a part of them, where lanes of an encoder have unequal numbers of
// samples (docs/step_time.md#classes-of-ranks).
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

struct RankClass {
  int role = 0;                    // index in Plan::roles
  std::vector<RankRange> ranks;    // of the role
  std::vector<int64_t> samples;    // by module: of a microbatch on the lane of these ranks; 0: they are not in it
  std::vector<double> of_planned;  // by module: that number / the number for which Symbol::mean is (the largest lane's)
  std::string what;                // what tells it apart from others of its role; empty: it is the whole role

  int first_rank() const { return ranks.front().first; }
  int64_t count() const;  // ranks
};

// In the order of Plan::roles; within a role, the ranks with the most samples come first. Roles without ranks have no
// class.
std::vector<RankClass> ClassesOf(const Plan& plan);

}  // namespace planwright
