#include "planner/plan/link/program_parts.h"

#include <algorithm>

namespace planwright {
namespace {

bool TouchesState(const Instruction& instruction) {
  return std::any_of(instruction.inputs.begin(), instruction.inputs.end(), IsStateName) ||
         std::any_of(instruction.outputs.begin(), instruction.outputs.end(),
                     [](const Output& output) { return IsStateName(output.name); });
}

}  // namespace

std::string PartOf(const LinkedProgram& program, const LinkedEntry& entry) {
  const LinkedBlock& list = *program.calls()[entry.call].block;
  const bool calls = std::any_of(list.body.begin(), list.body.end(),
                                 [](const LinkedInstruction& linked) { return linked.called >= 0; });
  if (list.block != nullptr && !calls) {
    const std::string& name = list.block->name;
    return name.substr(0, std::min(name.find(".forward"), name.find(".backward")));
  }
  switch (entry.instruction->op_class) {
    case OpClass::kData: return "data";
    case OpClass::kState: return "optimizer";
    default: return TouchesState(*entry.instruction->source) ? "optimizer" : "transfers";
  }
}

}  // namespace planwright
