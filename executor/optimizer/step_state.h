// Sums of the current step over microbatches, then over ranks, and what the optimizer decides from them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright::executor {

struct StepState {
  StepState(const Plan& plan, at::Device device);
  void Begin(int64_t step);

  // The scalar (one-element view) behind an accumulator name such as "$reals.norm.language" or "$integers.routing".
  at::Tensor accumulator(const std::string& name) const;

  int64_t step = 0;         // from 0
  at::Tensor integers;      // i64 [loss_tokens, routing]
  at::Tensor reals;         // f64 [loss, aux, norm.MODULE in plan order]: norms squared
  at::Tensor expert_counts; // i64 [moe layers, experts]; no elements without experts

  // Set by ClipAndGate.
  bool skipped = false;
  double clip = 1.0;
  double grad_norm = 0;
  std::vector<double> module_norms;  // in plan order
  double learning_rate = 0, weight_decay = 0;

 private:
  const Plan* plan_;
};

}  // namespace planwright::executor
