// How long a step takes by arithmetic alone, and where ranks wait for each other. An estimate (docs/flops.md#time):
// matrix products run at a fixed share of the device's dense peak, expert rows are spread evenly, and transfers and all
// other operations take no time.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

// The share of the dense peak that matrix products are assumed to reach.
inline constexpr double kEfficiency = 0.4;

// The forward or backward of one stage for one microbatch.
struct StageAction {
  std::string module;
  int stage = 0, microbatch = 0;
  int index = 0;  // index of its call in the role's own list
  bool backward = false;
  double start = 0, end = 0;  // from the step's start, in StepTime's unit
};

struct RoleTime {
  const Role* role = nullptr;
  double flops = 0;                  // of one rank in one step, at mean sizes
  double busy = 0;                   // sum of its actions' times, in the unit of StepTime::length
  std::vector<StageAction> actions;  // in program order; empty: the role computes nothing
};

struct StepTime {
  bool seconds = false;  // times are seconds; false: the device is unknown, and times are FLOPs
  double length = 0;     // time until the last rank is done
  double bubble = 0;     // share of the step in which a rank waits, on average over ranks
  std::vector<RoleTime> roles;
};
StepTime TimeStep(const Plan& plan);

}  // namespace planwright
