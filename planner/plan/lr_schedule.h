// Learning rate and weight decay at a sample count. Formulas and order of operations: facts 6.1, 6.2; both agree with
// the field's implementation bit for bit, so nothing here may be rearranged.
#pragma once

#include "planner/plan/plan.h"

namespace planwright {

// `sample`: consumed samples; LR of step t (from 1) is at (t - 1) * global_samples.
double LearningRateAt(const LearningRate& rate, double sample);
double WeightDecayAt(const WeightDecay& decay, double sample);

}  // namespace planwright
