// The tail of a step: reduce gradients, agree on the number of loss tokens, scale, clip, step, gather parameters
// (docs/training/step.md#order).
#include <algorithm>
#include <utility>

#include "planner/base/text/bug.h"
#include "planner/compile/schedule/blocks/lower_stage.h"
#include "planner/compile/schedule/programs/program_builder.h"
#include "planner/plan/statement/expert_counts.h"

namespace planwright {

using std::string;

void ProgramBuilder::SumOver(const string& group, const string& accumulator) {
  const auto sum = std::find_if(accumulators_.begin(), accumulators_.end(),
                                [&](const Accumulator& candidate) { return candidate.name == accumulator; });
  Require(sum != accumulators_.end(), "no accumulator " + accumulator);
  Instruction& reduce = Emit(OpKind::kAllReduce);
  reduce.inputs = {accumulator};
  reduce.outputs = {{accumulator, {sum->dtype, {sum->elements}, {}, std::nullopt, false}}};
  reduce.attributes["reduce"] = string("sum");
  reduce.group = group;
}

void ProgramBuilder::ReduceGradients(const LoweredModule& lowered, int stage) {
  if (overlap_.reduce) return;  // the backward of the last microbatch has reduced them
  for (size_t i = 0; i < lowered.module->buckets.size(); ++i) {
    if (lowered.module->buckets[i].stage == stage) Append(ReduceBucket(*lowered.module, i));
  }
}

// Steps and gathers the stage's buckets in the order in which the next forward reads them, so that the first layers can
// start while later buckets are still gathered.
void ProgramBuilder::StepBuckets(const Module& module, int stage) {
  std::vector<char> stepped(module.buckets.size(), false);
  for (const Storage& storage : module.storages) {
    if (storage.bucket < 0 || storage.stage != stage ||
        std::exchange(stepped[static_cast<size_t>(storage.bucket)], true))
      continue;
    Emit(OpKind::kAdamW, &module, storage.bucket);
    std::vector<Instruction> gather = GatherBucket(module, static_cast<size_t>(storage.bucket));
    for (Instruction& instruction : gather) instruction.stream = overlap_.gather ? kGatherStream : "";
    Append(std::move(gather));
  }
}

// Collectives over the world come in the same order in all roles, or ranks would wait for each other.
void ProgramBuilder::Tail(const std::vector<const LoweredModule*>& modules, int stage) {
  for (const LoweredModule* lowered : modules) ReduceGradients(*lowered, stage);
  const bool alone = inputs_.world_size == 1;
  // $integers has the number of loss tokens N, by which gradients are scaled; $reals has the square norms of the scaled
  // gradients. So the two sums cannot be one.
  if (!alone) SumOver("world", "$integers");
  for (OpKind kind : {OpKind::kScaleGradients, OpKind::kSquareNorm}) {
    for (const LoweredModule* lowered : modules) {
      const std::vector<Bucket>& buckets = lowered->module->buckets;
      for (size_t i = 0; i < buckets.size(); ++i) {
        if (buckets[i].stage == stage) Emit(kind, lowered->module, static_cast<int>(i));
      }
    }
  }
  if (!alone) SumOver("world", "$reals");
  if (!alone && inputs_.sums_by_source()) {
    SumOver("world", "$source_losses");
    SumOver("world", "$source_tokens");
  }
  for (const LoweredModule* lowered : modules) {
    const Module& module = *lowered->module;
    if (StepsExpertBias(module, stage) && module.grid.tp * module.grid.cp * module.grid.dp > 1) {
      SumOver(module.name + ".tp_dp_cp", "$expert_counts");
    }
  }
  Emit(OpKind::kClipAndGate);
  for (const LoweredModule* lowered : modules) {
    const Module& module = *lowered->module;
    StepBuckets(module, stage);
    if (StepsExpertBias(module, stage)) Emit(OpKind::kUpdateExpertBias, &module);
  }
  Emit(OpKind::kLogStep);
}

}  // namespace planwright
