// Which backward instruction differentiates which forward one, read from the `transposes` lines of the table of
// operations (planner/plan/ops.def).
#pragma once

#include <vector>

#include "planner/plan/op_table.h"

namespace planwright {

// One for each kind that the instruction may differentiate: bias_grad is the backward of two. Empty: it is no backward.
std::vector<const GradientRule*> RulesOfBackward(const Instruction& instruction);

// Whether some backward instruction makes a gradient of input `index` of a forward instruction.
bool HasInputGradient(OpKind forward, size_t index);

}  // namespace planwright
