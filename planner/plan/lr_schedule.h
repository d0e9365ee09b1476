// Learning rate and weight decay at a sample count. Formulas: docs/training/budget.md#learning-rate and #weight-decay.
// The results equal those of Megatron's optimizer_param_scheduler bit for bit (lr_schedule_test), so the order of
// operations in the .cc must stay.
#pragma once

#include "planner/plan/plan.h"

namespace planwright {

// `sample`: samples that are consumed before the step: (t - 1) * global_samples for step t, counted from 1.
double LearningRateAt(const LearningRate& rate, double sample);
double WeightDecayAt(const WeightDecay& decay, double sample);

// What a step multiplies with: of the parameters of one part.
struct StepRates {
  double learning_rate = 0, weight_decay = 0;
  bool operator==(const StepRates&) const = default;
};

// The rates of the parameters in this part (Parameter::part; -1: those of the schedule). The factors of a part are its
// learning rate over LearningRate::peak, and its weight decay over WeightDecay::end. A weight decay that is the same
// throughout, which may be 0, has no shape: then the part's is the same throughout, too. Formulas:
// docs/training/step.md#rates-by-part.
StepRates RatesAt(const Plan& plan, int part, double sample);

}  // namespace planwright
