// V4 of a compute instruction's operands: their sizes, dtypes and published names agree with each other, with the
// stored parameters and with its attributes. Layouts are judged in layout_problem.h.
#pragma once

#include <string>

#include "planner/verify/shared/typed_instruction.h"

namespace planwright {

// Each returns what is wrong, or "".

// Sizes: dims that the table of operations gives one name have one size, and attributes fix some of them.
std::string SizeProblem(const TypedInstruction& typed);

// DTypes, in a plan of `precision`.
std::string DTypeProblem(const TypedInstruction& typed, DType precision);

// Parameters whose shapes do not tell them apart: the scale of a norm and its shift, the up and down weights of
// experts. The published name says which one the operand must be. Backward instructions that read the same parameters
// as their forward are compared with it by VerifyBackward.
std::string PublishedNameProblem(const TypedInstruction& typed, const Module& module);

}  // namespace planwright
