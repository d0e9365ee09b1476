// The tail of a role's step: reduce, clip, step, gather.
#include <algorithm>
#include <utility>

#include "planner/diagnostics/bug.h"
#include "planner/schedule/lower_stage.h"
#include "planner/schedule/program_builder.h"

namespace planwright {

using std::string;

void ProgramBuilder::SumOver(const string& group, const string& name) {
  const Accumulator* sum = plan_.FindAccumulator(name);
  Require(sum != nullptr, "no accumulator " + name);
  Instruction& reduce = step_.emplace_back(Instruction{.kind = OpKind::kAllReduce, .inputs = {name}});
  reduce.outputs = {{name, {sum->dtype, {sum->elements}, {}, std::nullopt, false}}};
  reduce.attributes["reduce"] = string("sum");
  reduce.group = group;
}

void ProgramBuilder::ReduceGradients(const LoweredModule& lowered, int stage) {
  for (size_t i = 0; i < lowered.module->buckets.size(); ++i) {
    if (lowered.module->buckets[i].stage != stage) continue;
    if (!overlap_.reduce) Append(ReduceBucket(*lowered.module, i));
  }
}

// Steps and gathers the stage's buckets in the order in which the next forward reads them.
void ProgramBuilder::StepBuckets(const Module& module, int stage) {
  std::vector<char> stepped(module.buckets.size(), false);
  for (const Storage& storage : module.storages) {
    if (storage.bucket < 0 || storage.stage != stage ||
        std::exchange(stepped[static_cast<size_t>(storage.bucket)], true))
      continue;
    State(OpKind::kAdamW, &module, storage.bucket);
    std::vector<Instruction> gather = GatherBucket(module, static_cast<size_t>(storage.bucket));
    for (Instruction& instruction : gather) instruction.stream = overlap_.gather ? kGatherStream : "";
    Append(std::move(gather));
  }
}

// Facts 5.1 and 5.2: reduce, agree on N, scale, norm over modules, clip, step, gather. World collectives stand in one
// order on all roles.
void ProgramBuilder::Tail(const std::vector<const LoweredModule*>& modules, int stage) {
  const auto has_experts = [&](const Module& module) {
    return module.trains_backbone &&
           std::any_of(module.layers.begin(), module.layers.end(),
                       [&](const LayerSummary& layer) { return layer.expert_row >= 0 && layer.stage == stage; });
  };
  for (const LoweredModule* lowered : modules) ReduceGradients(*lowered, stage);
  const bool alone = plan_.world_size == 1;
  if (!alone) SumOver("world", "$integers");
  for (OpKind kind : {OpKind::kScaleGradients, OpKind::kSquareNorm}) {
    for (const LoweredModule* lowered : modules) {
      const std::vector<Bucket>& buckets = lowered->module->buckets;
      for (size_t i = 0; i < buckets.size(); ++i) {
        if (buckets[i].stage == stage) State(kind, lowered->module, static_cast<int>(i));
      }
    }
  }
  if (!alone) SumOver("world", "$reals");
  for (const LoweredModule* lowered : modules) {
    const Module& module = *lowered->module;
    if (has_experts(module) && module.grid.tp * module.grid.cp * module.grid.dp > 1) {
      SumOver(module.name + ".tp_dp_cp", "$expert_counts");
    }
  }
  State(OpKind::kClipAndGate, nullptr);
  for (const LoweredModule* lowered : modules) {
    const Module& module = *lowered->module;
    StepBuckets(module, stage);
    if (has_experts(module)) State(OpKind::kUpdateExpertBias, &module);
  }
  State(OpKind::kLogStep, nullptr);
}

}  // namespace planwright
