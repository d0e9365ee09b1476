// The lint about the predicted time of a step.
#pragma once

#include "planner/plan/plan.h"
#include "planner/predict/estimate/step_time.h"
#include "planner/recipe/diagnostics/diagnostic.h"

namespace planwright {

// Warns, once for each module, if its ranks wait for other roles for more than a third of a step (PW0704). `time`: of
// the plan, in seconds.
void LintTime(const Plan& plan, const StepTime& time, Diagnostics& diagnostics);

}  // namespace planwright
