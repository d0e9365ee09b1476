// The end of a step: scale the gradients, their norm, clip, AdamW, expert bias (docs/training/step.md#order). Each
// function reads and writes this rank's shards only. On a GPU none waits for the device: whether the step is applied is
// decided and kept there.
//
// What is done with a bucket has two forms, as compute instructions have (executor/ops/forms.h): a plain one in
// LibTorch's operations, and a fast one for GPUs, chosen once by the device.
#pragma once

#include "executor/optimizer/module_state.h"
#include "executor/optimizer/step_state.h"

namespace planwright::executor {

struct BucketForms {
  // Multiplies the bucket's gradient shard by 1 / max(N, 1), N the loss tokens of the global batch
  // (docs/model/loss.md#normalization). Null: the shard stays as it is, and square_norm and adamw, which read it,
  // multiply what they read. That saves a pass through memory.
  void (*scale_gradients)(const StepState& step, BucketState& bucket);
  // The bucket's scaled gradient shard in host memory, once scale_gradients is done if there is one, and before adamw
  // is. May be the shard itself. Waits for the device.
  at::Tensor (*scaled_gradients)(const StepState& step, const BucketState& bucket);
  // Adds the squares of the bucket's scaled gradients to `sum`, in double. Ranks that hold a replica of another rank's
  // shard add nothing, so each element counts once (docs/training/step.md#gradient-norm).
  void (*square_norm)(const StepState& step, const BucketState& bucket, const at::Tensor& sum);
  // One step of AdamW with decoupled weight decay on the owned shard; the bias correction uses the number of applied
  // steps (docs/training/step.md#adamw). Steps the masters and copies them to the parameter shard. A skipped step
  // leaves weights and states as they are.
  void (*adamw)(const OptimizerPlan& optimizer, const StepState& step, BucketState& bucket);
};

const BucketForms& BucketFormsOn(at::Device device);
// Those of GPUs; null in builds without CUDA (optimizer_on_gpu.cc, optimizer_without_gpus.cc).
const BucketForms* FastBucketForms();

// From the sums of squares over all ranks: the norm of each module and the global norm, whether the step is skipped
// (its norm is not finite), and the clip coefficient: max_norm / (norm + 1e-6) if that is below 1, else 1. With
// max_norm 0 it is always 1. All ranks have the same sums, so all decide the same
// (docs/training/step.md#gradient-norm).
void ClipAndGate(const Plan& plan, StepState& step);

// For each layer with experts: bias += rate * sign(total - experts * count), compared in integers, so that no rounding
// decides (docs/model/mixture_of_experts.md#expert-bias). A skipped step changes nothing.
void UpdateExpertBias(const StepState& step, ModuleState& module);

// The tokens that chose each expert of a layer, i64 [experts]: a row of `$expert_counts`.
at::Tensor ExpertCounts(const StepState& step, const Module& module, const LayerSummary& layer);

}  // namespace planwright::executor
