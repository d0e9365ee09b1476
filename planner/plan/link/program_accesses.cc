#include "planner/plan/link/program_accesses.h"

#include <algorithm>

namespace planwright {

ProgramAccesses::ProgramAccesses(const LinkedProgram& program)
    : program_(program), state_of_(static_cast<size_t>(program.instructions())) {
  for (const LinkedEntry& entry : program.entries()) streams_ = std::max(streams_, entry.instruction->stream + 1);
  for (int value = 0; value < program.values(); ++value) resources_.Add(-1);
  for (const Module& module : program.blocks().plan().modules) storages_.emplace_back(module.storages.size());
}

const InstructionAccesses& ProgramAccesses::of(size_t index) {
  const LinkedEntry& entry = program_.entries()[index];
  const LinkedInstruction& instruction = *entry.instruction;
  const int* values = program_.ValuesOf(entry.call);
  touched_.stream = instruction.stream;
  touched_.accesses.clear();
  touched_.frees.clear();
  const int overwritten = program_.Overwritten(index);
  for (int operand : instruction.inputs) AddValue(values, operand, operand >= 0 && values[operand] == overwritten);
  for (const LinkedExchangePart& part : instruction.parts) {
    AddValue(values, part.value, false);
    AddValue(values, part.sizes, false);
  }
  // Every instruction that runs here needs memory, at least while it runs. The exception is a communication of state,
  // which is communicated where it lies. An exchange that only sends may copy rows, and greets whom it first meets.
  touched_.makes_value = instruction.op_class != OpClass::kCommunication || !instruction.parts.empty();
  for (int operand : instruction.outputs) touched_.makes_value |= AddValue(values, operand, true);
  AddState(instruction);
  AddSlots(program_.calls()[entry.call], instruction);
  for (int after : program_.after(index)) {
    if (after >= 0) touched_.frees.push_back(after);
  }
  return touched_;
}

// What dies with the first one is read until both are done, so its memory is not given out before. Its number is freed
// here even where an output of the second has it already.
InstructionAccesses ProgramAccesses::OfBoth(size_t second) {
  InstructionAccesses both = of(second - 1);
  const InstructionAccesses& own = of(second);
  both.accesses.insert(both.accesses.end(), own.accesses.begin(), own.accesses.end());
  both.frees.insert(both.frees.end(), own.frees.begin(), own.frees.end());
  both.makes_value |= own.makes_value;
  return both;
}

// False if the operand is state, which StateAccessesOf finds by its name.
bool ProgramAccesses::AddValue(const int* values, int operand, bool writes) {
  const int value = operand < 0 ? -1 : values[operand];
  if (value >= 0) touched_.accesses.push_back({value, writes});
  return value >= 0;
}

// Names are put together once for each instruction, not in each layer and microbatch.
void ProgramAccesses::AddState(const LinkedInstruction& instruction) {
  StateRange& range = state_of_[static_cast<size_t>(instruction.number)];
  if (range.first < 0) {
    range.first = static_cast<int>(state_.size());
    for (const StateAccess& access : StateAccessesOf(*instruction.source, program_.role().modules))
      state_.push_back({resources_.Intern(access.resource), access.writes});
    range.count = static_cast<int>(state_.size()) - range.first;
  }
  const auto first = state_.begin() + range.first;
  touched_.accesses.insert(touched_.accesses.end(), first, first + range.count);
}

void ProgramAccesses::AddSlots(const LinkedCall& call, const LinkedInstruction& instruction) {
  if (call.slots < 0 || call.block->module < 0) return;
  const LinkedBlocks& blocks = program_.blocks();
  const auto module = static_cast<size_t>(call.block->module);
  for (int slot : instruction.parameters)
    touched_.accesses.push_back({ParameterOf(module, blocks.storage(call.slots + slot)), false});
  for (int slot : instruction.gradients)
    touched_.accesses.push_back({GradientOf(module, blocks.storage(call.slots + slot)), true});
}

int ProgramAccesses::ParameterOf(size_t module, int storage) {
  int& resource = storages_[module][static_cast<size_t>(storage)].parameter;
  if (resource < 0) {
    const Module& of = program_.blocks().plan().modules[module];
    const int bucket = of.storages[static_cast<size_t>(storage)].bucket;
    resource = resources_.Add(resources_.Intern(ParametersResource(of, bucket)));
  }
  return resource;
}

int ProgramAccesses::GradientOf(size_t module, int storage) {
  const Module& of = program_.blocks().plan().modules[module];
  const int bucket = of.storages[static_cast<size_t>(storage)].bucket;
  if (bucket < 0) return ParameterOf(module, storage);  // it is trained by no gradient
  int& resource = storages_[module][static_cast<size_t>(storage)].gradient;
  if (resource < 0) resource = resources_.Add(resources_.Intern(GradientsResource(of, bucket)));
  return resource;
}

}  // namespace planwright
