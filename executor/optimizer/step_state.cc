#include "executor/optimizer/step_state.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "executor/base/tensors.h"

namespace planwright::executor {

StepState::StepState(const Plan& plan, at::Device device) {
  for (const Accumulator& accumulator : plan.accumulators) {
    const at::Tensor whole =
        at::zeros({accumulator.elements}, at::TensorOptions(device).dtype(ScalarTypeOf(accumulator.dtype)));
    TORCH_CHECK(accumulator.parts.empty() || static_cast<int64_t>(accumulator.parts.size()) == accumulator.elements,
                accumulator.name, " has ", accumulator.elements, " elements but ", accumulator.parts.size(), " parts");
    TORCH_CHECK(named_.emplace(accumulator.name, whole).second, "two accumulators are named ", accumulator.name);
    // Parts are views of the whole, so that one all-reduce sums all of them.
    sums_.push_back(whole);
    for (size_t i = 0; i < accumulator.parts.size(); ++i) {
      named_.emplace(accumulator.name + "." + accumulator.parts[i], whole.narrow(0, static_cast<int64_t>(i), 1));
    }
  }
  const auto find = [&](const std::string& name) {
    const auto found = named_.find(name);
    return found == named_.end() ? at::Tensor() : found->second;
  };
  if (const at::Tensor tokens = find("$integers.loss_tokens"); tokens.defined()) loss_tokens = tokens.select(0, 0);
  expert_counts = find("$expert_counts");
  for (const Module& module : plan.modules) squares.push_back(find("$reals.norm." + module.name));
  part_rates.resize(plan.optimizer.parts.size());
  const at::TensorOptions wide = at::TensorOptions(device).dtype(at::kDouble);
  norms = at::zeros({static_cast<int64_t>(plan.modules.size()) + 1}, wide);
  clip = at::ones({}, wide);
  skipped = at::zeros({1}, wide.dtype(at::kFloat));
  applied_steps = at::zeros({}, wide.dtype(at::kLong));
  skipped_steps = at::zeros({}, wide.dtype(at::kLong));
}

void StepState::Begin(int64_t number) {
  step = number;
  for (at::Tensor& sum : sums_) sum.zero_();
}

const at::Tensor& StepState::sum(std::string_view name) const {
  const auto found = named_.find(name);
  TORCH_CHECK(found != named_.end(), "the plan has no accumulator ", std::string(name));
  return found->second;
}

}  // namespace planwright::executor
