// The tail of a role's step: reduce, clip, step, gather.
#include <algorithm>

#include "planner/schedule/lower_stage.h"
#include "planner/schedule/program_builder.h"

namespace planwright {

using std::string;

void ProgramBuilder::WorldSum(const string& value, DType dtype, int64_t count, const string& group) {
  Instruction& reduce = step_.emplace_back(Instruction{.kind = OpKind::kAllReduce, .inputs = {value}});
  reduce.outputs = {{value, {dtype, {count}, {}, std::nullopt, false}}};
  reduce.attributes["reduce"] = string("sum");
  reduce.group = group;
}

void ProgramBuilder::ReduceGradients(const LoweredModule& lowered, int stage) {
  for (size_t i = 0; i < lowered.module->buckets.size(); ++i) {
    if (lowered.module->buckets[i].stage != stage) continue;
    if (!overlap_.reduce) Append(ReduceBucket(*lowered.module, i, dtype_ == DType::kFp64 ? DType::kFp64 : DType::kFp32));
  }
}

void ProgramBuilder::GatherParameters(const Module& module, int stage) {
  for (size_t i = 0; i < module.buckets.size(); ++i) {
    if (module.buckets[i].stage == stage) Append(GatherBucket(module, i, dtype_));
  }
}

// Facts 5.1 and 5.2: reduce, agree on N, scale, norm over modules, clip, step, gather. World collectives stand in one order on all roles.
void ProgramBuilder::Tail(const std::vector<const LoweredModule*>& modules, int stage) {
  const auto has_buckets = [&](const Module& module) {
    return std::any_of(module.buckets.begin(), module.buckets.end(), [&](const Bucket& bucket) { return bucket.stage == stage; });
  };
  const auto has_experts = [&](const Module& module) {
    return module.trains_backbone && std::any_of(module.layers.begin(), module.layers.end(), [&](const LayerSummary& layer) {
             return layer.kind == 'E' && layer.stage == stage;
           });
  };
  for (const LoweredModule* lowered : modules) ReduceGradients(*lowered, stage);
  const bool alone = plan_.world_size == 1;
  if (!alone) WorldSum("$integers", DType::kInt64, 2, "world");
  for (const LoweredModule* lowered : modules) {
    if (!has_buckets(*lowered->module)) continue;
    State(OpKind::kScaleGradients, lowered->module);
    if (!overlap_.reduce) continue;
    for (size_t i = 0; i < lowered->module->buckets.size(); ++i) {
      const Bucket& bucket = lowered->module->buckets[i];
      if (bucket.stage != stage || (bucket.reduce_group.empty() && bucket.tp_group.empty())) continue;
      step_.back().waits.push_back(GradientsReduced(*lowered->module, i));
    }
  }
  for (const LoweredModule* lowered : modules) {
    if (has_buckets(*lowered->module)) State(OpKind::kSquareNorm, lowered->module);
  }
  if (!alone) WorldSum("$reals", DType::kFp64, 2 + static_cast<int64_t>(plan_.modules.size()), "world");
  for (const LoweredModule* lowered : modules) {
    const Module& module = *lowered->module;
    if (has_experts(module) && module.grid.tp * module.grid.cp * module.grid.dp > 1) {
      WorldSum("$expert_counts", DType::kInt64, module.moe_layers * module.experts, module.name + ".tp_dp_cp");
    }
  }
  State(OpKind::kClipAndGate, nullptr);
  for (const LoweredModule* lowered : modules) {
    const Module& module = *lowered->module;
    if (has_buckets(module)) State(OpKind::kAdamW, &module);
    if (has_experts(module)) State(OpKind::kUpdateExpertBias, &module);
    if (!overlap_.gather) GatherParameters(module, stage);
  }
  State(OpKind::kLogStep, nullptr);
}

}  // namespace planwright
