#include "planner/plan/link/first_additions.h"

namespace planwright {

FirstAdditions::FirstAdditions(const LinkedProgram& program) : writes_(program.entries().size()) {
  const LinkedBlocks& blocks = program.blocks();
  std::vector<std::vector<bool>> added_to;
  for (const Module& module : blocks.plan().modules) {
    written_.emplace_back(module.storages.size());
    added_to.emplace_back(module.storages.size());
  }
  const LinkedProgram::Range step = program.step();
  for (size_t i = step.first; i < step.end; ++i) {
    const LinkedInstruction& instruction = *program.entries()[i].instruction;
    const LinkedCall& call = program.calls()[program.entries()[i].call];
    if (instruction.gradients.empty() || call.slots < 0 || call.block->module < 0) continue;
    const auto module = static_cast<size_t>(call.block->module);
    const auto storage_of = [&](int slot) { return blocks.storage(call.slots + slot); };
    if (instruction.source->kind == OpKind::kLinearWeightGrad && instruction.gradients.size() == 1) {
      const int storage = storage_of(instruction.gradients.front());
      if (storage >= 0 && !added_to[module][static_cast<size_t>(storage)])
        writes_[i] = written_[module][static_cast<size_t>(storage)] = true;
    }
    for (int slot : instruction.gradients) {
      if (const int storage = storage_of(slot); storage >= 0) added_to[module][static_cast<size_t>(storage)] = true;
    }
  }
}

}  // namespace planwright
