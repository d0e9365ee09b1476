// Proves a compiled plan and reports what fails at the lines of the recipe that it comes from.
#pragma once

#include "planner/plan/plan.h"
#include "planner/recipe/diagnostics/diagnostic.h"

namespace planwright {

// The line of an index of Plan::origins; nowhere for -1.
Location LocationOf(const Plan& plan, int origin);

// Runs `verify` over the plan. A plan that does not fit its device is the author's problem and comes with a help. Any
// other broken rule is an error of ours, reported at the line that asked for it. Warning: a plan that fits only while
// expert rows stay within moe.imbalance.
void ProvePlan(const Plan& plan, Diagnostics& diagnostics);

}  // namespace planwright
