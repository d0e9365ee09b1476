// Lints that need the predicted time of a step: ranks that wait, and what a long training lacks.
#pragma once

#include "planner/plan/plan.h"
#include "planner/predict/estimate/step_time.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// Warns, once for each module, if its ranks wait for other roles for more than a third of a step (PW0704). `time`: of
// the plan, in seconds.
void LintTime(const Plan& plan, const StepTime& time, Diagnostics& diagnostics);

// What a test or a measurement may leave out, and a training hardly can. Of a plan whose step is predicted
// (launch.predicted_step) and whose training takes more than an hour by it: warns if it saves no checkpoint (PW0416),
// and if its language model knows no positions (PW0510). `recipe`: that of the plan.
void LintTraining(const Recipe& recipe, const Plan& plan, Diagnostics& diagnostics);

}  // namespace planwright
