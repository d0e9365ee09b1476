// Which instruction of a forward an instruction of its backward differentiates.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/op_table.h"
#include "planner/verify/v5_samples_and_gradients/forward_block.h"

namespace planwright {

// The index of the forward instruction that reads and makes the same values. Of several (rows of several encoders are
// merged by equal instructions) the one with the same attributes. -1: none, and `problem` says why.
int ForwardOf(const ForwardBlock& forward, const Instruction& op, const GradientRule& rule, std::string& problem);

// The instructions of the rule's chain that begins with `made`; null for one that is not there.
std::vector<const Instruction*> ChainOf(const ForwardBlock& forward, const Instruction& made, const GradientRule& rule);

// The last instruction of a chain that starts a gradient makes the loss of the step, from which all gradients come.
bool MakesLoss(const ForwardBlock& forward, const Instruction* last);

// The backward has the slots of its forward, in their order, and its attributes. What is wrong, or "".
std::string SettingsProblem(const Instruction& op, const Instruction& made);

}  // namespace planwright
