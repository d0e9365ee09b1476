// A step that was traced, as times for SimulateStep: each rank is a role of its own, each entry takes what it took, and
// a communication what it took from the arrival of its last member on.
#pragma once

#include <memory>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/predict/simulate/simulate_step.h"
#include "planner/wire/records/trace.h"

namespace planwright {

// The programs of all ranks of a plan, and which of their communications meet.
class RankPrograms {
 public:
  // Of a plan that compiles or was verified; it is copied.
  explicit RankPrograms(const Plan& plan);
  RankPrograms(const RankPrograms&) = delete;

  const Plan& plan() const { return plan_; }  // with one role for each rank, in the order of ranks
  const LinkedBlocks& blocks() const { return blocks_; }
  const std::vector<const LinkedProgram*>& programs() const { return programs_; }  // by rank
  const std::vector<const StreamWaits*>& waits() const { return waits_; }          // by rank
  const CommunicationMatches& matches() const { return *matches_; }

 private:
  const Plan plan_;
  LinkedBlocks blocks_;
  std::vector<std::unique_ptr<LinkedProgram>> linked_;
  std::vector<const LinkedProgram*> programs_;
  std::vector<std::unique_ptr<StreamWaits>> made_waits_;
  std::vector<const StreamWaits*> waits_;
  std::unique_ptr<const CommunicationMatches> matches_;
};

struct ReplayedStep {
  std::vector<RoleTimes> times;  // by rank
  double length = 0;             // of the traced step: from the first begin to the last end
  std::vector<double> waiting;   // by rank: from its own arrival at communications to that of the last member
};

// `traces`: by rank; each must have all entries of the step. Where the host runs ahead, what it waited for its device
// is no part of a launch.
ReplayedStep ReplayOf(const RankPrograms& ranks, const std::vector<Trace>& traces, int64_t step, HostModel host);

}  // namespace planwright
