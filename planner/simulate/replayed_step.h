// A step that was traced, as times for SimulateStep: each rank is a role of its own, each entry takes what it took, and
// a communication what it took from the arrival of its last member on.
#pragma once

#include <memory>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/run_files/trace.h"
#include "planner/simulate/simulate_step.h"

namespace planwright {

// The plan with one role for each rank, in the order of ranks.
Plan WithRoleOfEachRank(Plan plan);

struct ReplayedStep {
  std::vector<RoleTimes> times;  // by rank
  double length = 0;             // of the traced step: from the first begin to the last end
  std::vector<double> waiting;   // by rank: from its own arrival at communications to that of the last member
};

// `programs`, `matches`: of WithRoleOfEachRank. `traces`: by rank; each must have all entries of the step.
ReplayedStep ReplayOf(const std::vector<const LinkedProgram*>& programs, const CommunicationMatches& matches,
                      const std::vector<Trace>& traces, int64_t step);

}  // namespace planwright
