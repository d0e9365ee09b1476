#include "planner/predict/estimate/step_peak.h"

#include <algorithm>
#include <vector>

namespace planwright {

StepPeak FindPeak(const LinkedProgram& program, LinkedProgram::Range range, const InstructionCosts& costs,
                  SizeCase sizes) {
  struct HeldValue {
    int64_t bytes = 0;
    bool communication = false;  // its bytes count as communication, not as activations
  };
  std::vector<HeldValue> values(program.values());
  int64_t activations = 0, communication = 0;
  std::vector<HeldValue> late;  // what has died, but is held until the next entry is done
  StepPeak peak;
  const LinkedEntry* fullest = nullptr;
  const auto category = [&](const HeldValue& value) -> int64_t& {
    return value.communication ? communication : activations;
  };
  for (size_t i = range.first; i < range.end; ++i) {
    const LinkedEntry& entry = program.entries()[i];
    const LinkedInstruction& instruction = *entry.instruction;
    const std::span<const BytesBySizeCase> bytes = costs.outputs(instruction);
    // What is overwritten becomes the output, and is not counted beside it.
    if (const int overwritten = program.Overwritten(i); overwritten >= 0) {
      category(values[overwritten]) -= values[overwritten].bytes;
      values[overwritten].bytes = 0;
    }
    for (size_t k = 0; k < instruction.outputs.size(); ++k) {
      if (instruction.outputs[k] < 0) continue;  // state
      HeldValue& made = values[program.ValueOf(entry, instruction.outputs[k])];
      made = {bytes[k][static_cast<size_t>(sizes)], instruction.op_class == OpClass::kCommunication};
      category(made) += made.bytes;
    }
    // While the instruction runs it holds its outputs and temporary tensors, and still all that dies after it.
    const int64_t workspace = costs.workspace(instruction)[static_cast<size_t>(sizes)];
    if (activations + communication + workspace > peak.total()) {
      peak.activations = activations;
      peak.communication = communication;
      peak.workspace = workspace;
      fullest = &entry;
    }
    for (const HeldValue& value : late) category(value) -= value.bytes;
    late.clear();
    for (int event : program.after(i)) {
      HeldValue& value = values[event < 0 ? ~event : event];
      if (event >= 0 && program.HoldsForNext(i)) {
        late.push_back(value);
        continue;
      }
      category(value) -= value.bytes;
      if (event >= 0) continue;
      // A frame keeps the value for the backward: from here on it is an activation.
      value.communication = false;
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

}  // namespace planwright
