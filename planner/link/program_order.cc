#include "planner/link/program_order.h"

#include <algorithm>

#include "planner/diagnostics/text.h"

namespace planwright {
namespace {

class OrderedProgram {
 public:
  OrderedProgram(const LinkedProgram& program, ResourceTree& resources) : program_(program), resources_(resources) {
    for (int value = 0; value < program.values(); ++value) values_.push_back(resources.Number(Cat("value", value)));
  }

  StreamOrder::Step Step(size_t index) {
    const LinkedEntry& entry = program_.entries()[index];
    const LinkedInstruction& instruction = *entry.instruction;
    StreamOrder::Step step{.stream = instruction.stream};
    for (int operand : instruction.inputs) Touch(entry, operand, false, step);
    for (const LinkedPart& part : instruction.parts) {
      Touch(entry, part.value, false, step);
      Touch(entry, part.sample_rows, false, step);
    }
    // Whatever runs here takes memory, if only while it runs, but for what is communicated where it lies.
    step.makes_value = instruction.op_class != OpClass::kCommunication;
    for (int operand : instruction.outputs) step.makes_value |= Touch(entry, operand, true, step);
    for (const StateAccess& access : StateAccessesOf(*instruction.source, program_.role().modules)) {
      step.accesses.push_back({resources_.Number(access.resource), access.writes});
    }
    AddSlots(entry, step);
    for (int after : program_.after(index)) {
      if (after >= 0) step.frees.push_back(values_[static_cast<size_t>(after)]);
    }
    return step;
  }

 private:
  bool Touch(const LinkedEntry& entry, int operand, bool writes, StreamOrder::Step& step) {
    const int value = operand < 0 ? -1 : program_.ValueOf(entry, operand);  // state is named by the instruction
    if (value >= 0) step.accesses.push_back({values_[static_cast<size_t>(value)], writes});
    return value >= 0;
  }

  void AddSlots(const LinkedEntry& entry, StreamOrder::Step& step) {
    const LinkedCall& call = program_.calls()[entry.call];
    if (call.slots < 0 || call.block->module < 0) return;
    const LinkedBlocks& blocks = program_.blocks();
    const Module& module = blocks.plan().modules[static_cast<size_t>(call.block->module)];
    const auto storage = [&](int slot) -> const Storage& {
      return module.storages[static_cast<size_t>(blocks.storage(call.slots + slot))];
    };
    for (int slot : entry.instruction->parameters)
      step.accesses.push_back({resources_.Number(ParameterResource(module, storage(slot))), false});
    for (int slot : entry.instruction->gradients)
      step.accesses.push_back({resources_.Number(GradientResource(module, storage(slot))), true});
  }

  const LinkedProgram& program_;
  ResourceTree& resources_;
  std::vector<int> values_;  // resources, by value
};

}  // namespace

ProgramOrder::ProgramOrder(const LinkedProgram& program) {
  for (const LinkedEntry& entry : program.entries()) streams_ = std::max(streams_, entry.instruction->stream + 1);
  if (streams_ == 1) return;
  OrderedProgram ordered(program, resources_);
  for (size_t i = 0; i < program.entries().size(); ++i) steps_.push_back(ordered.Step(i));
}

}  // namespace planwright
