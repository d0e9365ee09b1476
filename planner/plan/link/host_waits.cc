#include "planner/plan/link/host_waits.h"

#include <algorithm>

namespace planwright {

bool HostWaitsFor(const LinkedBlock& block, const LinkedInstruction& instruction) {
  const auto& outputs = instruction.source->outputs;
  if (std::none_of(outputs.begin(), outputs.end(), [](const Output& output) { return output.type.host; })) return false;
  if (instruction.op_class == OpClass::kCommunication) return true;  // NCCL receives on the device
  return instruction.op_class == OpClass::kCompute &&
         std::any_of(instruction.inputs.begin(), instruction.inputs.end(),
                     [&](int input) { return input >= 0 && !block.types[input]->host; });
}

int64_t CountHostWaits(const LinkedProgram& program) {
  int64_t waits = 0;
  // By instruction, -1: not known yet. A block's instructions come again in each layer and microbatch.
  std::vector<signed char> known(program.instructions(), -1);
  for (size_t i = program.step().first; i < program.step().end; ++i) {
    const LinkedEntry& entry = program.entries()[i];
    signed char& waiting = known[entry.instruction->number];
    if (waiting < 0) waiting = HostWaitsFor(*program.calls()[entry.call].block, *entry.instruction);
    waits += waiting;
  }
  return waits;
}

}  // namespace planwright
