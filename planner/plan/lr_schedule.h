// Learning rate and weight decay at a sample count. Formulas: docs/training/budget.md#learning-rate and #weight-decay.
// The results equal those of Megatron's optimizer_param_scheduler bit for bit (lr_schedule_test), so the order of
// operations in the .cc must stay.
#pragma once

#include "planner/plan/plan.h"

namespace planwright {

// `sample`: samples that are consumed before the step: (t - 1) * global_samples for step t, counted from 1.
double LearningRateAt(const LearningRate& rate, double sample);
double WeightDecayAt(const WeightDecay& decay, double sample);

}  // namespace planwright
