// The memory function: follows every value of a role's step from its definition to its death and finds the fullest
// moment.
#pragma once

#include <string>

#include "planner/estimate/instruction_costs.h"
#include "planner/link/linked_program.h"

namespace planwright {

struct StepPeak {
  int64_t activations = 0;  // values, and what frames keep for backward passes that have not run
  // values that a transfer made and no frame keeps: receive buffers, gathered and exchanged rows
  int64_t communication = 0;
  std::string frame;  // where: "language.layers.3"
  const Block* block = nullptr;
  const Instruction* instruction = nullptr;

  int64_t total() const { return activations + communication; }
};

// The peak of a step at `sizes`. `costs` has seen the program's step_list.
StepPeak WalkStep(const LinkedProgram& program, const InstructionCosts& costs, Sizes sizes);

// Elements of the largest operand of a compute instruction that the step runs.
int64_t LargestOperand(const LinkedProgram& program, const InstructionCosts& costs);

}  // namespace planwright
