#include "executor/optimizer/optimizer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/sign.h>

#include <algorithm>
#include <cmath>

namespace planwright::executor {
namespace {

// torch.optim.AdamW on one range of elements.
void StepRange(const OptimizerPlan& optimizer, const StepState& step, int64_t count, BucketState& bucket,
               const DecayRange& range) {
  const int64_t first = range.first, size = range.end - range.first;
  at::Tensor weight = bucket.master.narrow(0, first, size);
  const at::Tensor gradient = bucket.gradient_shard.narrow(0, first, size);
  at::Tensor m = bucket.first_moment.narrow(0, first, size), v = bucket.second_moment.narrow(0, first, size);
  const double correction1 = 1 - std::pow(optimizer.beta1, static_cast<double>(count));
  const double correction2 = 1 - std::pow(optimizer.beta2, static_cast<double>(count));
  if (range.decay) weight.mul_(1 - step.learning_rate * step.weight_decay);
  m.mul_(optimizer.beta1).add_(gradient, 1 - optimizer.beta1);
  v.mul_(optimizer.beta2).addcmul_(gradient, gradient, 1 - optimizer.beta2);
  const at::Tensor denominator = v.sqrt().div_(std::sqrt(correction2)).add_(optimizer.eps);
  weight.addcdiv_(m, denominator, -step.learning_rate / correction1);
}

}  // namespace

void ScaleGradients(const StepState& step, BucketState& bucket) {
  const int64_t tokens = step.sum("$integers.loss_tokens").item<int64_t>();
  bucket.gradient_shard.mul_(1.0 / static_cast<double>(std::max<int64_t>(tokens, 1)));
}

void SquareNorm(const BucketState& bucket, const at::Tensor& sum) {
  if (!bucket.counted) return;
  const at::Tensor wide = bucket.gradient_shard.to(at::kDouble);
  at::Tensor(sum).add_(wide.dot(wide));
}

void ClipAndGate(const Plan& plan, StepState& step) {
  double total = 0;
  for (size_t i = 0; i < plan.modules.size(); ++i) {
    const double square = step.sum("$reals.norm." + plan.modules[i].name).item<double>();
    step.module_norms[i] = std::sqrt(square);
    total += square;
  }
  step.grad_norm = std::sqrt(total);
  step.skipped = !std::isfinite(step.grad_norm);
  if (!step.skipped) ++step.applied;
  const double limit = plan.optimizer.clip_grad_norm, coefficient = limit / (step.grad_norm + 1e-6);
  step.clip = limit > 0 && coefficient < 1 ? coefficient : 1.0;
}

void StepAdamW(const OptimizerPlan& optimizer, const StepState& step, BucketState& bucket) {
  if (step.skipped) return;
  if (step.clip < 1) bucket.gradient_shard.mul_(step.clip);
  for (const DecayRange& range : bucket.ranges) StepRange(optimizer, step, step.applied, bucket, range);
  if (!bucket.master.is_alias_of(bucket.parameter_shard)) bucket.parameter_shard.copy_(bucket.master);
}

at::Tensor ExpertCounts(const StepState& step, const Module& module, const LayerSummary& layer) {
  return step.sum("$expert_counts").view({-1, module.experts()}).select(0, layer.expert_row);
}

void UpdateExpertBias(const StepState& step, ModuleState& state) {
  const Module& module = state.module();
  const double rate = module.real("moe.bias_rate");
  if (step.skipped || rate == 0) return;
  for (const LayerSummary& layer : module.layers) {
    if (layer.expert_row < 0) continue;
    const at::Tensor counts = ExpertCounts(step, module, layer);
    at::Tensor bias = state.slot(layer.frame, "gate_bias").parameter;
    bias.add_(at::sign(counts.sum() - counts * module.experts()).to(bias.scalar_type()), rate);
  }
}

}  // namespace planwright::executor
