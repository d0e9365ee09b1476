// V4 of parameters whose shapes do not tell them apart: which published tensor an operand must be.
#pragma once

#include <string>

#include "planner/verify/layout_rules.h"

namespace planwright {

// What is wrong with the parameters that an instruction reads, or "": the scale of a norm for its shift, the way up of
// experts for the way down. Where a backward instruction reads all that its forward one does, VerifyBackward compares
// the two.
std::string SlotMeaningProblem(const TypedInstruction& typed, const Module& module);

}  // namespace planwright
