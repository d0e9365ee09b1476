// Follows every value of a role's step from its definition to its last reference, calls expanded, and finds the fullest moment.
#pragma once

#include <string>

#include "planner/estimate/program_index.h"

namespace planwright {

struct StepPeak {
  int64_t activations = 0;    // values, and what frames keep for backward passes that have not run
  int64_t communication = 0;  // values that a transfer made and no frame keeps: receive buffers, gathered and exchanged rows
  std::string frame;          // where: "language.layers.3"
  const Block* block = nullptr;
  const Instruction* instruction = nullptr;

  int64_t total() const { return activations + communication; }
};

// At Sizes.
struct StepPeaks {
  StepPeak planned, worst;
};

// A value lives as long as something names it: the list that made it, until it frees it; a caller, until it does; a frame, from the forward
// that saves it until the backward that takes it frees it.
StepPeaks WalkStep(const ProgramIndex& index, const BlockCode& step);

// Elements of the largest operand of a compute instruction that the step runs.
int64_t LargestOperand(const ProgramIndex& index, const BlockCode& step);

}  // namespace planwright
