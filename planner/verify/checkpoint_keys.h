// The keys of a checkpoint: part of V9.
#pragma once

#include <vector>

#include "planner/plan/plan.h"
#include "planner/verify/verify.h"

namespace planwright {

// Adds a violation for every key that two tensors share: names of parameters over all modules (each expert's too), of
// optimizer states, of the common state, and names in published files.
void VerifyCheckpointKeys(const Plan& plan, std::vector<Violation>& violations);

}  // namespace planwright
