// V4: shapes and dtypes of an instruction's operands agree with each other, with the stored parameters and with its
// attributes.
#pragma once

#include <string>

#include "planner/verify/layout_rules.h"

namespace planwright {

// What is wrong with the sizes of a compute instruction, or "".
std::string SizeProblem(const TypedInstruction& typed);

// What is wrong with its dtypes in a plan of `precision`, or "".
std::string DTypeProblem(const TypedInstruction& typed, DType precision);

// "bf16[4096,1,2688]"
std::string ShapeText(const ValueType& type);

}  // namespace planwright
