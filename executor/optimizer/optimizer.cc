#include "executor/optimizer/optimizer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/sign.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace planwright::executor {
namespace {

// A shard is worked through in parts, so that what is made on the way stays under 256 MB however large the shard.
constexpr int64_t kElementsOfAPart = int64_t{1} << 24;

// Calls work(first, size) for one part of [first, end) after another.
template <typename Work>
void InParts(int64_t first, int64_t end, int64_t elements, Work work) {
  for (; first < end; first += elements) work(first, std::min(elements, end - first));
}

// torch.optim.AdamW on `size` elements that all decay, or do not.
void StepPart(const OptimizerPlan& optimizer, const StepState& step, int64_t count, BucketState& bucket, bool decay, int64_t first,
              int64_t size) {
  at::Tensor weight = bucket.master.narrow(0, first, size);
  const at::Tensor gradient = bucket.gradient_shard.narrow(0, first, size);
  at::Tensor m = bucket.first_moment.narrow(0, first, size), v = bucket.second_moment.narrow(0, first, size);
  const double correction1 = 1 - std::pow(optimizer.beta1, static_cast<double>(count));
  const double correction2 = 1 - std::pow(optimizer.beta2, static_cast<double>(count));
  if (decay) weight.mul_(1 - step.learning_rate * step.weight_decay);
  m.mul_(optimizer.beta1).add_(gradient, 1 - optimizer.beta1);
  v.mul_(optimizer.beta2).addcmul_(gradient, gradient, 1 - optimizer.beta2);
  const at::Tensor denominator = v.sqrt().div_(std::sqrt(correction2)).add_(optimizer.eps);
  weight.addcdiv_(m, denominator, -step.learning_rate / correction1);
}

}  // namespace

void ScaleGradients(ModuleState& module, const StepState& step) {
  const int64_t tokens = step.accumulator("$integers.loss_tokens").item<int64_t>();
  const double scale = 1.0 / static_cast<double>(std::max<int64_t>(tokens, 1));
  for (BucketState& bucket : module.buckets()) bucket.gradient_shard.mul_(scale);
}

void SquareNorm(const ModuleState& module, const StepState& step) {
  at::Tensor sum = step.accumulator("$reals.norm." + module.module().name);
  for (const BucketState& bucket : module.buckets()) {
    if (!bucket.counted) continue;
    const at::Tensor& gradient = bucket.gradient_shard;
    // What is wide already is not copied: only the dot product's own limit cuts it.
    const bool wide_already = gradient.scalar_type() == at::kDouble;
    InParts(0, gradient.numel(), wide_already ? std::numeric_limits<int32_t>::max() : kElementsOfAPart, [&](int64_t first, int64_t size) {
      const at::Tensor wide = gradient.narrow(0, first, size).to(at::kDouble);
      sum.add_(wide.dot(wide));
    });
  }
}

void ClipAndGate(const Plan& plan, StepState& step) {
  const at::Tensor squares = step.reals.cpu();
  double total = 0;
  for (size_t i = 0; i < plan.modules.size(); ++i) {
    const double square = squares.const_data_ptr<double>()[2 + i];
    step.module_norms[i] = std::sqrt(square);
    total += square;
  }
  step.grad_norm = std::sqrt(total);
  step.skipped = !std::isfinite(step.grad_norm);
  const double limit = plan.optimizer.clip_grad_norm, coefficient = limit / (step.grad_norm + 1e-6);
  step.clip = limit > 0 && coefficient < 1 ? coefficient : 1.0;
}

void StepAdamW(const OptimizerPlan& optimizer, const StepState& step, ModuleState& module) {
  if (step.skipped) return;
  const int64_t count = ++module.applied_steps;
  for (BucketState& bucket : module.buckets()) {
    if (step.clip < 1) bucket.gradient_shard.mul_(step.clip);
    for (const DecayRange& range : bucket.ranges) {
      InParts(range.first, range.end, kElementsOfAPart,
              [&](int64_t first, int64_t size) { StepPart(optimizer, step, count, bucket, range.decay, first, size); });
    }
    if (!bucket.master.is_alias_of(bucket.parameter_shard)) bucket.parameter_shard.copy_(bucket.master);
  }
}

int64_t ExpertRowOf(const Module& module, const std::string& frame) {
  int64_t row = 0;
  for (const LayerSummary& layer : module.layers) {
    if (layer.kind != 'E') continue;
    if (layer.frame == frame) return row;
    ++row;
  }
  TORCH_CHECK(false, frame, " is not a layer with experts");
}

void UpdateExpertBias(const StepState& step, ModuleState& module) {
  if (step.skipped || module.module().bias_rate == 0) return;
  for (const LayerSummary& layer : module.module().layers) {
    if (layer.kind != 'E') continue;
    const at::Tensor counts = step.expert_counts.select(0, ExpertRowOf(module.module(), layer.frame));
    at::Tensor bias = module.slot(layer.frame, "gate_bias").parameter;
    bias.add_(at::sign(counts.sum() - counts * module.module().experts).to(bias.scalar_type()), module.module().bias_rate);
  }
}

}  // namespace planwright::executor
