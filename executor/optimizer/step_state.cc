#include "executor/optimizer/step_state.h"

#include <ATen/ops/zeros.h>

namespace planwright::executor {

StepState::StepState(const Plan& plan, at::Device device) : plan_(&plan) {
  const at::TensorOptions options(device);
  integers = at::zeros({2}, options.dtype(at::kLong));
  reals = at::zeros({2 + static_cast<int64_t>(plan.modules.size())}, options.dtype(at::kDouble));
  int64_t layers = 0, experts = 0;
  for (const Module& module : plan.modules) {
    if (module.moe_layers == 0) continue;
    TORCH_CHECK(layers == 0, "two modules with experts");
    layers = module.moe_layers, experts = module.experts;
  }
  expert_counts = at::zeros({layers, experts}, options.dtype(at::kLong));
  module_norms.resize(plan.modules.size());
}

void StepState::Begin(int64_t number) {
  step = number;
  integers.zero_();
  reals.zero_();
  expert_counts.zero_();
  skipped = false;
  clip = 1.0;
}

at::Tensor StepState::accumulator(const std::string& name) const {
  if (name == "$integers.loss_tokens") return integers.narrow(0, 0, 1);
  if (name == "$integers.routing") return integers.narrow(0, 1, 1);
  if (name == "$reals.loss") return reals.narrow(0, 0, 1);
  if (name == "$reals.aux") return reals.narrow(0, 1, 1);
  for (size_t i = 0; i < plan_->modules.size(); ++i) {
    if (name == "$reals.norm." + plan_->modules[i].name) return reals.narrow(0, 2 + static_cast<int64_t>(i), 1);
  }
  TORCH_CHECK(false, "no accumulator ", name);
}

}  // namespace planwright::executor
