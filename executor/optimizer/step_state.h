// The sums of the current step over microbatches, then over ranks (Plan::accumulators), and what the optimizer decides
// from them. All of it lies on the device: the host launches a step without knowing whether it will be skipped, and
// reads what came of it later (step_reports.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright::executor {

struct StepState {
  StepState(const Plan& plan, at::Device device);
  void Begin(int64_t step);

  // The tensor of a sum, "$integers", or the one-element view of a part, "$reals.norm.language".
  const at::Tensor& sum(std::string_view name) const;

  // Known to the host: they follow from the step's number.
  int64_t step = 0;  // from 0
  double learning_rate = 0, weight_decay = 0;

  // Views of sums that the end of a step reads; undefined where a plan has no such sum.
  at::Tensor loss_tokens;           // i64 []
  at::Tensor expert_counts;         // i64, whole
  std::vector<at::Tensor> squares;  // fp64 [1], by module in plan order

  // Set by ClipAndGate.
  at::Tensor norms;    // fp64 [modules + 1]: of each module in plan order, then over all
  at::Tensor clip;     // fp64 []: gradients are multiplied by it
  at::Tensor skipped;  // fp32 [1]: 1 where the step is not applied, else 0
  // Over all steps, this one included.
  at::Tensor applied, left_out;  // i64 []: steps that were applied (AdamW's own count), and that were skipped

 private:
  std::vector<at::Tensor> sums_;                          // whole ones
  std::map<std::string, at::Tensor, std::less<>> named_;  // whole ones and parts
};

}  // namespace planwright::executor
