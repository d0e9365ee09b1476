// How long an evaluation takes: the lists `evaluate` of all roles, simulated as a step is
// (docs/step_time.md#evaluation).
#pragma once

#include <cstdint>

#include "planner/plan/plan.h"

namespace planwright {

// Seconds of one evaluation of all sets; 0: the device is unknown, or nothing is evaluated.
double TimeEvaluation(const Plan& plan);

// Evaluations of the whole budget: before the first step, every EvaluationPlan::every_samples, and after the last step.
int64_t CountEvaluations(const Plan& plan);

}  // namespace planwright
