// How long a step takes by arithmetic alone, and where ranks wait for one another (docs/flops.md). An estimate:
// products at a stated share of the device's dense peak, expert rows spread evenly, no time for transfers or for
// anything that is no product.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

// The share of the dense peak that products are taken to reach.
inline constexpr double kEfficiency = 0.4;

// One call of a stage's forward or backward.
struct StageAction {
  std::string module;
  int stage = 0, microbatch = 0;
  bool backward = false;
  double start = 0, end = 0;  // from the step's start, in StepTime's unit
};

struct RoleTime {
  const Role* role = nullptr;
  double flops = 0;                  // of one rank in one step, at mean sizes
  double busy = 0;                   // of StepTime::length
  std::vector<StageAction> actions;  // in program order; empty: the role computes nothing
};

struct StepTime {
  bool seconds = false;  // false: no device is known, and times are FLOPs
  double length = 0;     // until the last rank is done
  double bubble = 0;     // share of the step that ranks wait, on average over ranks
  std::vector<RoleTime> roles;
};
StepTime TimeStep(const Plan& plan);

// Work of one microbatch on one rank of each stage, forward and backward: what a stage that is far heavier than the
// others holds up.
struct StageLoad {
  std::string module;
  int stage = 0;
  double flops = 0;
};
std::vector<StageLoad> StageLoads(const StepTime& time);

}  // namespace planwright
