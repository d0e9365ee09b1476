#include "planner/estimate/memory_walk.h"

#include <algorithm>
#include <vector>

namespace planwright {

StepPeak WalkStep(const LinkedProgram& program, const InstructionCosts& costs, Sizes sizes) {
  struct Value {
    int64_t bytes = 0;
    bool communication = false;
  };
  std::vector<Value> values(program.values());
  int64_t activations = 0, communication = 0;
  StepPeak peak;
  const LinkedEntry* fullest = nullptr;
  const auto held_by = [&](const Value& value) -> int64_t& {
    return value.communication ? communication : activations;
  };
  for (size_t i = program.step().first; i < program.step().end; ++i) {
    const LinkedEntry& entry = program.entries()[i];
    const LinkedInstruction& instruction = *entry.instruction;
    const std::span<const BytesAtSizes> bytes = costs.outputs(instruction);
    for (size_t k = 0; k < instruction.outputs.size(); ++k) {
      if (instruction.outputs[k] < 0) continue;  // state
      Value& made = values[program.ValueOf(entry, instruction.outputs[k])];
      made = {bytes[k][static_cast<size_t>(sizes)], instruction.op_class == OpClass::kCommunication};
      held_by(made) += made.bytes;
    }
    if (activations + communication > peak.total()) {
      peak.activations = activations;
      peak.communication = communication;
      fullest = &entry;
    }
    for (int event : program.after(i)) {
      Value& value = values[event < 0 ? ~event : event];
      held_by(value) -= value.bytes;
      if (event >= 0) continue;
      value.communication = false;  // a frame keeps it
      activations += value.bytes;
    }
  }
  if (fullest) {
    const LinkedCall& call = program.calls()[fullest->call];
    peak.instruction = fullest->instruction->source;
    peak.block = call.block->block;
    if (call.frame >= 0) peak.frame = program.blocks().frame(call.frame);
  }
  return peak;
}

int64_t LargestOperand(const LinkedProgram& program, const InstructionCosts& costs) {
  int64_t largest = 0;
  for (size_t i = program.step().first; i < program.step().end; ++i)
    largest = std::max(largest, costs.largest(*program.entries()[i].instruction));
  return largest;
}

}  // namespace planwright
