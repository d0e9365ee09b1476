// The end of a step: scale, norm, clip, AdamW, expert bias (facts 5.2, 5.4, 3.6). Each reads and writes this rank's shards only.
#pragma once

#include "executor/optimizer/module_state.h"
#include "executor/optimizer/step_state.h"

namespace planwright::executor {

// Gradient shards times 1 / max(N, 1), N the loss tokens of the global batch.
void ScaleGradients(ModuleState& module, const StepState& step);

// Adds the squares of the module's gradient shards, each element once over all ranks, to `$reals.norm.MODULE`, in double.
void SquareNorm(const ModuleState& module, const StepState& step);

// From the norms summed over the world: the global norm; skips the step unless it is finite; the clip coefficient
// max_norm / (norm + 1e-6) if that is below 1 (max_norm 0: never). Every rank decides alike.
void ClipAndGate(const Plan& plan, StepState& step);

// One step of AdamW with decoupled weight decay on the owned shards; bias correction by the module's count of applied steps. Writes the
// parameter shards. Nothing if the step is skipped.
void StepAdamW(const OptimizerPlan& optimizer, const StepState& step, ModuleState& module);

// bias += rate * sign(total - experts * count) per layer, compared in integers. Nothing if the step is skipped.
void UpdateExpertBias(const StepState& step, ModuleState& module);

// Row of `$expert_counts` that a frame's layer has: the number of MoE layers before it.
int64_t ExpertRowOf(const Module& module, const std::string& frame);

}  // namespace planwright::executor
