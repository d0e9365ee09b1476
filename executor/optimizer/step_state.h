// The sums of the current step over microbatches, then over ranks (Plan::accumulators), and what the optimizer decides from them.
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

  int64_t step = 0;  // from 0

  // Set by ClipAndGate.
  bool skipped = false;
  double clip = 1.0;
  double grad_norm = 0;
  std::vector<double> module_norms;  // in plan order
  int64_t applied = 0;               // steps that were not skipped, this one included: AdamW's own count
  double learning_rate = 0, weight_decay = 0;

 private:
  std::vector<at::Tensor> sums_;                        // whole ones
  std::map<std::string, at::Tensor, std::less<>> named_;  // whole ones and parts
};

}  // namespace planwright::executor
