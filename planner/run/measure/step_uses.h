// How often a step has each use of a profile, which is what the use weighs in a probe (docs/measure.md#a-probe).
#pragma once

#include <map>
#include <tuple>
#include <utility>

#include "planner/plan/device_profile.h"
#include "planner/plan/plan.h"

namespace planwright {

class StepUses {
 public:
  // Adds a step of a plan: of each rank its share, so that it counts as a step of one rank.
  void Add(const Plan& plan);

  // How often the added steps have the use of a point, in all; 1 for what none of them has.
  double Of(const MeasuredCompute& point) const;
  double Of(const MeasuredLaunch& point) const;

 private:
  // Points of other numbers of ranks on the fullest node are others.
  std::map<std::tuple<OpKind, DType, double, double, int>, double> compute_;  // flops, bytes, ranks
  std::map<std::pair<OpKind, int>, double> launches_;
};

}  // namespace planwright
