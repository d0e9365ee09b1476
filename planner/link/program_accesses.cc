#include "planner/link/program_accesses.h"

#include <algorithm>
#include <optional>

#include "planner/diagnostics/text.h"

namespace planwright {
namespace {

class AccessCollector {
 public:
  AccessCollector(const LinkedProgram& program, ResourceTree& resources) : program_(program), resources_(resources) {
    // The numbers of values are given out again, so a resource here is the memory of several values in turn. Freeing
    // and making one in its place conflict, as they should.
    for (int value = 0; value < program.values(); ++value)
      value_resources_.push_back(resources.Intern(Cat("value", value)));
    state_.resize(static_cast<size_t>(program.instructions()));
    for (const Module& module : program.blocks().plan().modules)
      storages_.push_back(std::vector<StorageResources>(module.storages.size()));
  }

  InstructionAccesses Collect(size_t index) {
    const LinkedEntry& entry = program_.entries()[index];
    const LinkedInstruction& instruction = *entry.instruction;
    InstructionAccesses touched{.stream = instruction.stream};
    const int overwritten = program_.Overwritten(index);
    for (int operand : instruction.inputs) {
      const bool writes = operand >= 0 && program_.ValueOf(entry, operand) == overwritten;
      AddValue(entry, operand, writes, touched);
    }
    for (const LinkedExchangePart& part : instruction.parts) {
      AddValue(entry, part.value, false, touched);
      AddValue(entry, part.sizes, false, touched);
    }
    // Every instruction that runs here needs memory, at least while it runs. The exception is a communication of state,
    // which is communicated where it lies.
    touched.makes_value = instruction.op_class != OpClass::kCommunication;
    for (int operand : instruction.outputs) touched.makes_value |= AddValue(entry, operand, true, touched);
    const std::vector<Access>& state = StateOf(instruction);
    touched.accesses.insert(touched.accesses.end(), state.begin(), state.end());
    AddSlots(entry, touched);
    for (int after : program_.after(index)) {
      if (after >= 0) touched.frees.push_back(value_resources_[static_cast<size_t>(after)]);
    }
    return touched;
  }

 private:
  // False if the operand is state, which StateAccessesOf finds by its name.
  bool AddValue(const LinkedEntry& entry, int operand, bool writes, InstructionAccesses& touched) {
    const int value = operand < 0 ? -1 : program_.ValueOf(entry, operand);
    if (value >= 0) touched.accesses.push_back({value_resources_[static_cast<size_t>(value)], writes});
    return value >= 0;
  }

  // Names are put together once for each instruction and storage, not in each layer and microbatch.
  const std::vector<Access>& StateOf(const LinkedInstruction& instruction) {
    std::optional<std::vector<Access>>& state = state_[static_cast<size_t>(instruction.number)];
    if (state) return *state;
    state.emplace();
    for (const StateAccess& access : StateAccessesOf(*instruction.source, program_.role().modules))
      state->push_back({resources_.Intern(access.resource), access.writes});
    return *state;
  }

  void AddSlots(const LinkedEntry& entry, InstructionAccesses& touched) {
    const LinkedCall& call = program_.calls()[entry.call];
    if (call.slots < 0 || call.block->module < 0) return;
    const LinkedBlocks& blocks = program_.blocks();
    const auto at = static_cast<size_t>(call.block->module);
    const Module& module = blocks.plan().modules[at];
    for (int slot : entry.instruction->parameters) {
      const auto storage = static_cast<size_t>(blocks.storage(call.slots + slot));
      int& resource = storages_[at][storage].parameter;
      if (resource < 0) resource = resources_.Intern(ParameterResource(module, module.storages[storage]));
      touched.accesses.push_back({resource, false});
    }
    for (int slot : entry.instruction->gradients) {
      const auto storage = static_cast<size_t>(blocks.storage(call.slots + slot));
      int& resource = storages_[at][storage].gradient;
      if (resource < 0) resource = resources_.Intern(GradientResource(module, module.storages[storage]));
      touched.accesses.push_back({resource, true});
    }
  }

  struct StorageResources {
    int parameter = -1, gradient = -1;  // -1: not known yet
  };

  const LinkedProgram& program_;
  ResourceTree& resources_;
  std::vector<int> value_resources_;                       // by value
  std::vector<std::optional<std::vector<Access>>> state_;  // by number of the instruction
  std::vector<std::vector<StorageResources>> storages_;    // by module and storage
};

}  // namespace

ProgramAccesses::ProgramAccesses(const LinkedProgram& program) {
  for (const LinkedEntry& entry : program.entries()) streams_ = std::max(streams_, entry.instruction->stream + 1);
  if (streams_ == 1) return;
  AccessCollector collector(program, resources_);
  accesses_.reserve(program.entries().size());
  for (size_t i = 0; i < program.entries().size(); ++i) accesses_.push_back(collector.Collect(i));
}

}  // namespace planwright
