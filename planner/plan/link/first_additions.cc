#include "planner/plan/link/first_additions.h"

#include <algorithm>

namespace planwright {
namespace {

bool CanWrite(const Instruction& instruction) {
  switch (instruction.kind) {
    case OpKind::kLinearWeightGrad: return instruction.gradients.size() == 1;  // a bias gets a sum of its own
    case OpKind::kExpertsGrad:
    case OpKind::kGatedExpertsGrad: return true;
    default: return false;
  }
}

}  // namespace

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
    std::vector<size_t> storages;
    for (int slot : instruction.gradients) {
      if (const int storage = blocks.storage(call.slots + slot); storage >= 0)
        storages.push_back(static_cast<size_t>(storage));
    }
    writes_[i] = CanWrite(*instruction.source) && storages.size() == instruction.gradients.size() &&
                 std::none_of(storages.begin(), storages.end(), [&](size_t s) { return added_to[module][s]; });
    for (size_t storage : storages) {
      added_to[module][storage] = true;
      if (writes_[i]) written_[module][storage] = true;
    }
  }
}

}  // namespace planwright
