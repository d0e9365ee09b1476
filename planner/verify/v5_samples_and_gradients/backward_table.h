// Which backward instruction differentiates which forward one, read from the `transposes` lines of the table of
// operations (planner/plan/ops.def).
#pragma once

#include "planner/plan/op_table.h"

namespace planwright {

// Null: the instruction is no backward one.
const GradientRule* RuleOfBackward(const Instruction& instruction);

// Whether some backward instruction makes a gradient of input `index` of a forward instruction.
bool HasInputGradient(OpKind forward, size_t index);

}  // namespace planwright
