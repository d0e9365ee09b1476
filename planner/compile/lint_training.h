// Lints about trainings that are long: what a test or a measurement may leave out, and a training hardly can.
#pragma once

#include "planner/plan/plan.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// Of a plan whose step is predicted (launch.predicted_step) and whose training takes more than an hour by it: warns if
// it saves no checkpoint (PW0416), and if its language model knows no positions (PW0510). `recipe`: that of the plan.
void LintTraining(const Recipe& recipe, const Plan& plan, Diagnostics& diagnostics);

}  // namespace planwright
