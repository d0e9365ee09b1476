#include "planner/verify/shared/plan_index.h"

#include <algorithm>

namespace planwright {

PlanIndex::PlanIndex(const Plan& plan) : plan_(plan) {
  for (const Block& block : plan.blocks) blocks_.emplace(block.name, &block);
  for (const Group& group : plan.groups) groups_.emplace(group.name, &group);
  for (const Module& module : plan.modules) {
    modules_.emplace(module.name, &module);
    for (const Storage& storage : module.storages) {
      storages_[storage.frame].push_back(&storage);
      for (const SharedSlot& shared : storage.shared) storages_[shared.frame].push_back(&storage);
    }
  }
  std::set<BlockInFrame> visited;  // all microbatches call the same blocks in the same frames
  // Calls inside a block that name their frame count even where no role calls the block: rules look at all blocks.
  for (const Block& block : plan.blocks) CollectFrames(block.body, "", visited);
  for (const Role& role : plan.roles) {
    for (const RoleList& part : kRoleLists) CollectFrames(role.*part.list, "", visited);
    CollectEvaluated(role.evaluate);
  }
}

void PlanIndex::CollectEvaluated(const std::vector<Instruction>& body) {
  for (const Instruction& call : body) {
    const Block* called = call.kind == OpKind::kCall ? block(call.block) : nullptr;
    if (called && evaluated_.insert(called).second) CollectEvaluated(called->body);
  }
}

void PlanIndex::CollectFrames(const std::vector<Instruction>& body, std::string_view frame,
                              std::set<BlockInFrame>& visited) {
  for (const Instruction& call : body) {
    const Block* called = call.kind == OpKind::kCall ? block(call.block) : nullptr;
    if (!called) continue;
    // A call without a frame runs in that of the call around it.
    const std::string_view inner = call.frame.empty() ? frame : std::string_view(call.frame);
    if (inner.empty() || !visited.emplace(called, inner).second) continue;
    frames_[called].push_back(inner);
    CollectFrames(called->body, inner, visited);
  }
}

const std::vector<std::string_view>& PlanIndex::FramesOf(const Block& block) const {
  static const std::vector<std::string_view> kNone;
  auto it = frames_.find(&block);
  return it == frames_.end() ? kNone : it->second;
}

const std::vector<const Storage*>& PlanIndex::StoragesOf(std::string_view frame) const {
  static const std::vector<const Storage*> kNone;
  auto it = storages_.find(frame);
  return it == storages_.end() ? kNone : it->second;
}

Slot PlanIndex::SlotOf(const Module& module, std::string_view frame, std::string_view slot) const {
  for (const Storage* storage : StoragesOf(frame)) {
    if (storage->SlotIn(frame) != slot) continue;
    Slot found{.storage = storage};
    if (storage->parameters.empty()) return found;  // VerifyStorage
    // Parameters that are joined in one storage are cut in the same way, so the first speaks for all.
    const Parameter& parameter = module.parameters[storage->parameters.front()];
    found.trained = parameter.trained;
    if (parameter.shard_dim < 0) return found;
    found.axis = parameter.experts > 0 ? Axis::kExpertTp : Axis::kTp;
    found.dim = parameter.shard_dim + (parameter.experts > 0 ? 1 : 0);  // experts are stacked in front
    return found;
  }
  return {};
}

std::vector<Axis> PlanIndex::WideAxes(const Group& group) const {
  std::vector<Axis> wide;
  const Module* of = module(group.module);
  if (!of) return wide;
  for (Axis axis : group.axes) {
    if (of->grid.size(axis) > 1) wide.push_back(axis);
  }
  // A group may list its axes in any order; rules compare them with lists in the order of Axis.
  std::sort(wide.begin(), wide.end());
  return wide;
}

int PlanIndex::OriginOf(int instruction, int enclosing, const Module* module) const {
  for (int origin : {instruction, enclosing, module ? module->origin : -1}) {
    if (origin >= 0) return origin;
  }
  return plan_.modules.empty() ? -1 : plan_.modules.front().origin;
}

int StageOf(const Role& role, const Module& module) {
  if (role.ranks.empty() || !module.grid.contains(role.ranks.front().first)) return -1;
  return CoordinateOf(module.grid, role.ranks.front().first, Axis::kPp);
}

bool Runs(const Role& role, const Module& module) {
  return std::find(role.modules.begin(), role.modules.end(), module.name) != role.modules.end();
}

}  // namespace planwright
