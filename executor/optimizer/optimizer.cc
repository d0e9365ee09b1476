#include "executor/optimizer/optimizer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/sign.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace planwright::executor {
namespace {

// Large shards are processed in parts, so that temporary tensors stay under 256 MB.
constexpr int64_t kElementsPerPart = int64_t{1} << 24;

// Calls work(first, size) for each part of [first, end), in order.
template <typename Work>
void ForParts(int64_t first, int64_t end, int64_t elements, Work work) {
  for (; first < end; first += elements) work(first, std::min(elements, end - first));
}

// The formula of torch.optim.AdamW, on `size` elements of one rule.
void StepPart(const OptimizerPlan& optimizer, const StepState& step, int64_t count, BucketState& bucket,
              const StepRule& rule, int64_t first, int64_t size) {
  const StepRates rates = step.RatesOf(rule.part);
  at::Tensor weight = bucket.master.narrow(0, first, size);
  const at::Tensor gradient = bucket.gradient_shard.narrow(0, first, size);
  at::Tensor m = bucket.states.at("exp_avg").narrow(0, first, size),
             v = bucket.states.at("exp_avg_sq").narrow(0, first, size);
  const double correction1 = 1 - std::pow(optimizer.beta1, static_cast<double>(count));
  const double correction2 = 1 - std::pow(optimizer.beta2, static_cast<double>(count));
  if (rule.decay) weight.mul_(1 - rates.learning_rate * rates.weight_decay);
  m.mul_(optimizer.beta1).add_(gradient, 1 - optimizer.beta1);
  v.mul_(optimizer.beta2).addcmul_(gradient, gradient, 1 - optimizer.beta2);
  const at::Tensor denominator = v.sqrt().div_(std::sqrt(correction2)).add_(optimizer.eps);
  weight.addcdiv_(m, denominator, -rates.learning_rate / correction1);
}

void ScaleGradients(const StepState& step, BucketState& bucket) {
  // The reciprocal is taken in fp64.
  bucket.gradient_shard.mul_(step.loss_tokens.clamp_min(1).to(at::kDouble).reciprocal_());
}

at::Tensor ScaledGradients(const StepState& /*step*/, const BucketState& bucket) { return bucket.gradient_shard.cpu(); }

// Gradients are scaled in memory.
void SquareNorm(const StepState& /*step*/, const BucketState& bucket, const at::Tensor& sum) {
  if (!bucket.counted) return;
  const at::Tensor& gradient = bucket.gradient_shard;
  // A shard in fp64 is not copied, so no memory bounds the parts, only the dot product's own limit.
  const bool wide_already = gradient.scalar_type() == at::kDouble;
  ForParts(0, gradient.numel(), wide_already ? std::numeric_limits<int32_t>::max() : kElementsPerPart,
           [&](int64_t first, int64_t size) {
             const at::Tensor wide = gradient.narrow(0, first, size).to(at::kDouble);
             at::Tensor(sum).add_(wide.dot(wide));
           });
}

void StepAdamW(const OptimizerPlan& optimizer, const StepState& step, BucketState& bucket) {
  // Read on the host, which costs nothing there.
  if (step.skipped.item<float>() != 0) return;
  const int64_t count = step.applied_steps.item<int64_t>();
  if (step.clip.item<double>() < 1) bucket.gradient_shard.mul_(step.clip);
  for (const RatedRange& range : bucket.ranges) {
    ForParts(range.first, range.end, kElementsPerPart,
             [&](int64_t first, int64_t size) { StepPart(optimizer, step, count, bucket, range.rule, first, size); });
  }
  // The forward reads the parameters, which are the masters rounded to the model's dtype.
  if (!bucket.master.is_alias_of(bucket.parameter_shard)) bucket.parameter_shard.copy_(bucket.master);
}

}  // namespace

const BucketForms& BucketFormsOn(at::Device device) {
  static constexpr BucketForms kPlain = {ScaleGradients, ScaledGradients, SquareNorm, StepAdamW};
  const BucketForms* fast = device.is_cuda() ? FastBucketForms() : nullptr;
  return fast != nullptr ? *fast : kPlain;
}

void ClipAndGate(const Plan& plan, StepState& step) {
  const int64_t modules = static_cast<int64_t>(step.squares.size());
  at::Tensor total = step.norms.narrow(0, modules, 1).zero_();
  for (int64_t i = 0; i < modules; ++i) {
    step.norms.narrow(0, i, 1).copy_(step.squares[i]);
    total.add_(step.squares[i]);
  }
  step.norms.sqrt_();
  const at::Tensor norm = step.norms.select(0, modules);
  step.skipped.copy_(norm.isfinite().logical_not());
  const at::Tensor skipped = step.skipped.select(0, 0).to(at::kLong);
  step.skipped_steps.add_(skipped);
  step.applied_steps.add_(skipped.neg().add_(1));
  const double limit = plan.optimizer.clip_grad_norm;
  if (limit <= 0) {
    step.clip.fill_(1);
    return;
  }
  // torch.nn.utils.clip_grad_norm_ has the same 1e-6.
  const at::Tensor coefficient = at::full_like(norm, limit).div_(norm + 1e-6);
  step.clip.copy_(at::where(coefficient < 1, coefficient, at::ones_like(coefficient)));
}

at::Tensor ExpertCounts(const StepState& step, const Module& module, const LayerSummary& layer) {
  return step.expert_counts.view({-1, module.experts()}).select(0, layer.expert_row);
}

void UpdateExpertBias(const StepState& step, ModuleState& state) {
  const Module& module = state.module();
  const double rate = module.real("moe.bias_rate");
  if (rate == 0) return;
  // 0 in a skipped step, else 1: the update is multiplied by it instead of asking the device.
  const at::Tensor open = step.skipped.neg().add_(1).to(at::kLong);
  for (const ExpertBias& layer : state.expert_biases()) {
    const at::Tensor counts = ExpertCounts(step, module, *layer.layer);
    at::Tensor(layer.bias)
        .add_(at::sign(counts.sum() - counts * module.experts()).mul_(open).to(layer.bias.scalar_type()), rate);
  }
}

}  // namespace planwright::executor
