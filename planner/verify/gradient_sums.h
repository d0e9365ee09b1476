// V6 of gradients over tp and cp: what the ranks of one data-parallel lane add to each gradient, read from the backward
// instructions, against what the bucket of its storage does about it at the end of the step.
#pragma once

#include <vector>

#include "planner/verify/plan_index.h"
#include "planner/verify/verify.h"

namespace planwright {

// A gradient of which each rank holds a part is counted on every rank, one that each rank holds whole is counted once,
// and the terms of a sum are summed.
std::vector<Violation> VerifyGradientSums(const PlanIndex& index);

}  // namespace planwright
