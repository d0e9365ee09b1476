// The budget of the tests of this room: 100 samples in 7 steps of 16, so the last step goes 12 samples past it.
#pragma once

#include "planner/plan/plan.h"

namespace planwright::testing {

// The learning rate rises to 1e-3 over 20 samples and falls to 1e-5 at 100. Weight decay runs from `decay_start` to
// 0.1.
inline Budget SmallBudget(double decay_start) {
  Budget budget;
  budget.train_samples = 100;
  budget.global_samples = 16;
  budget.micro_samples = 1;
  budget.sequence_length = 8;
  budget.microbatches = 4;
  budget.steps = 7;
  budget.block_samples = 4;
  budget.samples_past_budget = 12;
  budget.learning_rate = {
      .peak = 1e-3, .min = 1e-5, .warmup_samples = 20, .decay_samples = 100, .style = "linear", .wsd_style = ""};
  budget.weight_decay = {
      .start = decay_start, .end = 0.1, .style = decay_start == 0.1 ? "constant" : "linear", .samples = 100};
  budget.segments = {{"warmup", 0, 20}, {"decay", 20, 100}};
  return budget;
}

}  // namespace planwright::testing
