// The lint about the predicted time of a step.
#pragma once

#include "planner/diagnostics/diagnostic.h"
#include "planner/plan/plan.h"

namespace planwright {

// Warns, once for each module, if its ranks wait for other roles for more than a third of a step (PW0704). Nothing
// where the speed of the device is unknown.
void LintTime(const Plan& plan, Diagnostics& diagnostics);

}  // namespace planwright
