// What a plan uses that the executor of this version cannot run. The planner lowers and verifies more than the executor
// has (docs/decisions/0003). Such a plan can be shown, verified and compared. `plan launch` refuses it, and so does
// each rank.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

struct UnsupportedFeature {
  std::string what;  // "pipeline stages: pp 4 of module language"
  int origin = -1;   // index in Plan::origins; -1: none
};

// Empty: the executor can run the plan.
std::vector<UnsupportedFeature> UnsupportedFeatures(const Plan& plan);

}  // namespace planwright
