// The memory function: follows every value of a role's list, a step or a round of an evaluation, from the instruction
// that makes it to its death, and finds the moment at which most bytes are held (docs/memory.md).
#pragma once

#include <string>

#include "planner/plan/link/linked_program.h"
#include "planner/predict/estimate/instruction_costs.h"

namespace planwright {

// The fullest moment of a list: bytes, and the instruction at which it is reached.
struct StepPeak {
  int64_t activations = 0;  // values, and what frames keep for backwards that have not run
  // Values that a communication made and no frame keeps: receive buffers, gathered and exchanged rows.
  int64_t communication = 0;
  int64_t workspace = 0;                     // temporary tensors of the instruction
  std::string frame;                         // of the instruction: "language.layers.3"; empty: none
  const Block* block = nullptr;              // of the instruction; null: a role's list
  const Instruction* instruction = nullptr;  // null: the list makes no value

  int64_t total() const { return activations + communication + workspace; }
};

// `costs` must have the instructions of the role's list `range`, which is step() or evaluate().
StepPeak FindPeak(const LinkedProgram& program, LinkedProgram::Range range, const InstructionCosts& costs,
                  SizeCase sizes);

}  // namespace planwright
