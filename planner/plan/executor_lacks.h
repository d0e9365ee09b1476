// What a plan needs that this version's executor cannot run. The planner lowers and proves more than the executor has:
// such a plan is shown, proved and compared, and refused at launch, here and by each rank that is handed one.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

struct Lack {
  std::string what;  // "pipeline stages (pp 4 of module language)"
  int origin = -1;   // index in Plan::origins
};

// Nothing when the executor can run the plan.
std::vector<Lack> ExecutorLacks(const Plan& plan);

}  // namespace planwright
