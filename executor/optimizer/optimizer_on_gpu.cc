// The end of a step by the kernels of executor/kernels/adamw.h, for fp32 and fp64 shards on a GPU. optimizer.h says
// what the functions do.
#include <ATen/ops/empty.h>

#include "executor/kernels/adamw.h"
#include "executor/ops/fast/cuda_operands.h"
#include "executor/optimizer/optimizer.h"
#include "planner/base/text/limits.h"

namespace planwright::executor {
namespace {

using ops::CurrentStream;
using ops::Elements;

// Elements that kernels read 16 bytes at a time.
template <typename T>
T* Aligned(const at::Tensor& x) {
  T* elements = Elements<T>(x);
  TORCH_CHECK(reinterpret_cast<uintptr_t>(elements) % 16 == 0, "a shard of ", x.sizes(), " is not aligned to 16 bytes");
  return elements;
}

// Calls work(T()) for the dtype of a shard.
template <typename Work>
void WithType(const at::Tensor& shard, Work work) {
  switch (shard.scalar_type()) {
    case at::kFloat: return work(float());
    case at::kDouble: return work(double());
    default: TORCH_CHECK(false, "no step of shards of type ", shard.scalar_type());
  }
}

at::Tensor ScaledGradientsOnGpu(const StepState& step, const BucketState& bucket) {
  return bucket.gradient_shard.cpu().mul_(step.loss_tokens.cpu().clamp_min_(1).to(at::kDouble).reciprocal_());
}

void SquareNormOnGpu(const StepState& step, const BucketState& bucket, const at::Tensor& sum) {
  if (!bucket.counted) return;
  const at::Tensor& gradient = bucket.gradient_shard;
  const at::Tensor parts = at::empty({kSquareSumParts}, sum.options());
  WithType(gradient, [&](auto type) {
    LaunchAddSquares(Aligned<decltype(type)>(gradient), gradient.numel(), Elements<int64_t>(step.loss_tokens),
                     Elements<double>(parts), Elements<double>(sum), CurrentStream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
}

// Gradients are scaled and clipped on the way and stay as they are.
void StepAdamWOnGpu(const OptimizerPlan& optimizer, const StepState& step, BucketState& bucket) {
  const AdamWSettings settings = {optimizer.beta1, optimizer.beta2, optimizer.eps};
  static_assert(kMostRateParts < kMostAdamWRates);
  AdamWRates rates;
  TORCH_CHECK(step.part_rates.size() < kMostAdamWRates, "no step of ", step.part_rates.size(), " parts of rates");
  for (int part = -1; part < static_cast<int>(step.part_rates.size()); ++part, ++rates.count) {
    const StepRates of = step.RatesOf(part);
    rates.learning_rate[rates.count] = of.learning_rate, rates.weight_decay[rates.count] = of.weight_decay;
  }
  const AdamWGate gate = {Elements<int64_t>(step.applied_steps), Elements<int64_t>(step.loss_tokens),
                          Elements<double>(step.clip), Elements<float>(step.skipped)};
  const AdamWRanges ranges = {Elements<int64_t>(bucket.range_table), static_cast<int>(bucket.range_table.size(0))};
  const at::Tensor factors = at::empty({AdamWFactors(rates.count)}, bucket.master.options());
  __nv_bfloat16* parameters =
      bucket.master.is_alias_of(bucket.parameter_shard) ? nullptr : Elements<__nv_bfloat16>(bucket.parameter_shard);
  WithType(bucket.master, [&](auto type) {
    using T = decltype(type);
    LaunchAdamW<T>(
        settings, rates, gate, ranges,
        {Elements<T>(bucket.master), Aligned<T>(bucket.gradient_shard), Aligned<T>(bucket.states.at("exp_avg")),
         Aligned<T>(bucket.states.at("exp_avg_sq")), parameters, bucket.master.numel()},
        Elements<T>(factors), CurrentStream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
}

}  // namespace

const BucketForms* FastBucketForms() {
  static constexpr BucketForms kFast = {/*scale_gradients=*/nullptr, ScaledGradientsOnGpu, SquareNormOnGpu,
                                        StepAdamWOnGpu};
  return &kFast;
}

}  // namespace planwright::executor
