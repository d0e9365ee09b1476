// The first step of a plan of one rank, in this process and without the check of the plan: for plans that a check would
// refuse because their blocks are not those of the statement.
#pragma once

#include <string>

#include "planner/plan/plan.h"
#include "tests/numerics/oracle.h"

namespace planwright::testing {

struct FirstStep : StepNumbers {
  std::string failure;  // the message of the walker, if it did not get through
};

// `folder`: for the files of the run.
FirstStep RunFirstStep(const Plan& plan, const std::string& folder);

}  // namespace planwright::testing
