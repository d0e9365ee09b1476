// The end of a step: scale, norm, clip, AdamW, expert bias (facts 5.2, 5.4, 3.6). Each reads and writes this rank's
// shards only, and on a GPU none waits for the device.
#pragma once

#include "executor/optimizer/module_state.h"
#include "executor/optimizer/step_state.h"

namespace planwright::executor {

// The bucket's gradient shard times 1 / max(N, 1), N the loss tokens of the global batch.
void ScaleGradients(const StepState& step, BucketState& bucket);

// Adds the squares of the bucket's gradient shard, each element once over all ranks, to `sum`, in double.
void SquareNorm(const BucketState& bucket, const at::Tensor& sum);

// From the norms summed over the world: the global norm; skips the step unless it is finite; the clip coefficient
// max_norm / (norm + 1e-6) if that is below 1 (max_norm 0: never). Every rank decides alike.
void ClipAndGate(const Plan& plan, StepState& step);

// One step of AdamW with decoupled weight decay on the owned shard; bias correction by the count of applied steps.
// Writes the parameter shard. Nothing if the step is skipped.
void StepAdamW(const OptimizerPlan& optimizer, const StepState& step, BucketState& bucket);

// Its two forms. The plain one is what AdamW is, written out; it reads on the host whether the step is skipped, and
// runs on CPUs, where that costs nothing. The fused one is LibTorch's, whose kernels look for themselves; it runs on
// GPUs.
void StepAdamWPlain(const OptimizerPlan& optimizer, const StepState& step, BucketState& bucket);
void StepAdamWFused(const OptimizerPlan& optimizer, const StepState& step, BucketState& bucket);

// bias += rate * sign(total - experts * count) per layer, compared in integers. Nothing if the step is skipped.
void UpdateExpertBias(const StepState& step, ModuleState& module);

// The counts of a layer with experts, i64 [experts]: its row of `$expert_counts`.
at::Tensor ExpertCounts(const StepState& step, const Module& module, const LayerSummary& layer);

}  // namespace planwright::executor
