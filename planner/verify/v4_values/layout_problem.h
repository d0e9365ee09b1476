// V4 of layouts: how each compute instruction turns the layouts of its operands into those of its outputs, one axis at
// a time. Communication changes layouts by its own rules (communication_problem.h).
#pragma once

#include <string>
#include <vector>

#include "planner/verify/shared/typed_instruction.h"

namespace planwright {

// What is wrong with the layouts of a compute instruction over `axis` (of size above 1), or "". `gradients`, if given,
// receives what the ranks along the axis add to each gradient slot: a part, a term of a sum, or the same whole.
std::string LayoutProblem(const TypedInstruction& typed, Axis axis, std::vector<Held>* gradients = nullptr);

// What is wrong with a value's layout and that of its gradient taken together, or "". A cut value has a gradient that
// is cut in the same way; a partial sum has one that is whole; a whole value has one that is whole or a partial sum.
std::string GradientLayoutProblem(const ValueType& type, Axis axis);

}  // namespace planwright
