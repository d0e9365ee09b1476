// Which backward instruction differentiates which forward one, read from the table of operations (ops.def).
#pragma once

#include <vector>

#include "planner/plan/instruction.h"

namespace planwright {

// An operand of a backward instruction, by its place in the forward one.
struct GradientOperand {
  enum class Kind { kAny, kInput, kOutput, kOutputGradient, kInputGradient };
  Kind kind = Kind::kAny;
  size_t place = 0;
  int part = -1;  // of a gradient that is joined from parts: its place among them
};

struct GradientRule {
  OpKind forward{}, backward{};
  bool over_cp = false;
  std::vector<GradientOperand> operands, results;
};

// The rule of a backward instruction, or null.
const GradientRule* RuleOfBackward(const Instruction& instruction);

// Whether input `place` of a forward instruction has a gradient by some rule.
bool HasInputGradient(OpKind forward, size_t place);

}  // namespace planwright
