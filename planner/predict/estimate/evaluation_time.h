// How long an evaluation takes: the lists `evaluate` of all roles, simulated as a step is
// (docs/step_time.md#evaluation).
#pragma once

#include <cstdint>

#include "planner/plan/plan.h"
#include "planner/predict/rates/rates.h"

namespace planwright {

// Seconds of one evaluation of all sets; 0: the device is unknown, or nothing is evaluated. Without `rates`: those of
// the plan's cluster.
double TimeEvaluation(const Plan& plan);
double TimeEvaluation(const Plan& plan, const Rates& rates);

// Evaluations of the whole budget: before the first step, every EvaluationPlan::every_samples, and after the last step.
int64_t CountEvaluations(const Plan& plan);

}  // namespace planwright
