#include "planner/link/program_accesses.h"

#include <algorithm>

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
    for (const StateAccess& access : StateAccessesOf(*instruction.source, program_.role().modules)) {
      touched.accesses.push_back({resources_.Intern(access.resource), access.writes});
    }
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

  void AddSlots(const LinkedEntry& entry, InstructionAccesses& touched) {
    const LinkedCall& call = program_.calls()[entry.call];
    if (call.slots < 0 || call.block->module < 0) return;
    const LinkedBlocks& blocks = program_.blocks();
    const Module& module = blocks.plan().modules[static_cast<size_t>(call.block->module)];
    const auto storage = [&](int slot) -> const Storage& {
      return module.storages[static_cast<size_t>(blocks.storage(call.slots + slot))];
    };
    for (int slot : entry.instruction->parameters)
      touched.accesses.push_back({resources_.Intern(ParameterResource(module, storage(slot))), false});
    for (int slot : entry.instruction->gradients)
      touched.accesses.push_back({resources_.Intern(GradientResource(module, storage(slot))), true});
  }

  const LinkedProgram& program_;
  ResourceTree& resources_;
  std::vector<int> value_resources_;  // by value
};

}  // namespace

ProgramAccesses::ProgramAccesses(const LinkedProgram& program) {
  for (const LinkedEntry& entry : program.entries()) streams_ = std::max(streams_, entry.instruction->stream + 1);
  if (streams_ == 1) return;
  AccessCollector collector(program, resources_);
  for (size_t i = 0; i < program.entries().size(); ++i) accesses_.push_back(collector.Collect(i));
}

}  // namespace planwright
