// The sums of the current step (Plan::accumulators) and what the optimizer decides from them. Instructions add to the
// sums over microbatches, then they are summed over ranks. All tensors are on the device: the host launches a step
// without knowing whether it will be skipped, and reads the results later (executor/program/step_reports.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "planner/plan/lr_schedule.h"
#include "planner/plan/plan.h"

namespace planwright::executor {

struct StepState {
  StepState(const Plan& plan, at::Device device);
  void Begin(int64_t step);  // sets the sums to zero

  // The whole tensor of an accumulator, "$integers", or the one-element view of a part of it, "$reals.norm.language".
  // c10::Error if the plan has no such sum.
  const at::Tensor& sum(std::string_view name) const;

  // Known to the host, as they follow from the number of the step.
  int64_t step = 0;                            // from 0
  double learning_rate = 0, weight_decay = 0;  // of the schedule
  std::vector<StepRates> part_rates;           // of OptimizerPlan::parts

  // Of the parameters in this part (Parameter::part).
  StepRates RatesOf(int part) const {
    return part < 0 ? StepRates{learning_rate, weight_decay} : part_rates.at(static_cast<size_t>(part));
  }

  // Views of the sums that the end of a step reads; undefined if the plan has no such sum.
  at::Tensor loss_tokens;           // i64 []
  at::Tensor expert_counts;         // i64, whole
  std::vector<at::Tensor> squares;  // fp64 [1], by module in plan order

  // Set by ClipAndGate.
  at::Tensor norms;    // fp64 [modules + 1]: of each module in plan order, then over all
  at::Tensor clip;     // fp64 []: gradients are multiplied by it
  at::Tensor skipped;  // fp32 [1]: 1 where the step is not applied, else 0
  // Over all steps so far, this one included: how many were applied (the count of AdamW's bias correction), and how
  // many were skipped. i64 [].
  at::Tensor applied_steps, skipped_steps;

 private:
  std::vector<at::Tensor> sums_;                          // whole ones
  std::map<std::string, at::Tensor, std::less<>> named_;  // whole ones and parts
};

}  // namespace planwright::executor
