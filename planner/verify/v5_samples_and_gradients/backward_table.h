// Which backward instruction differentiates which forward one, read from the `transposes` lines of the table of
// operations (planner/plan/ops.def).
#pragma once

#include <vector>

#include "planner/plan/instruction.h"

namespace planwright {

// An operand or result of a backward instruction, named by its index in the forward one: in ops.def i0, o1, do0, di2.
struct GradientOperand {
  enum class Kind { kAny, kInput, kOutput, kOutputGradient, kInputGradient };  // kAny: not compared
  Kind kind = Kind::kAny;
  size_t index = 0;
  int part = -1;  // of a gradient that is joined from parts: its index among them; -1: it is whole
};

struct GradientRule {
  OpKind forward{}, backward{};
  bool over_cp = false;  // for instructions whose attribute cp is above 1
  std::vector<GradientOperand> operands, results;
};

// Null: the instruction is no backward one.
const GradientRule* RuleOfBackward(const Instruction& instruction);

// Whether some backward instruction makes a gradient of input `index` of a forward instruction.
bool HasInputGradient(OpKind forward, size_t index);

}  // namespace planwright
