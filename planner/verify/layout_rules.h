// V4: how each instruction turns the layouts of its operands into those of its outputs, axis by axis.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/instruction.h"
#include "planner/verify/plan_index.h"

namespace planwright {

// An instruction with all that its operands are. Types are those of the scope; null where undefined (reported
// elsewhere).
struct TypedInstruction {
  const Instruction* instruction = nullptr;
  std::vector<const ValueType*> inputs;
  std::vector<Slot> parameters, gradients;
};

// Axes that cut values. Along dp every lane has values of its own, along ep and expert_dp rows of its own, along pp
// other layers.
inline constexpr Axis kLayoutAxes[] = {Axis::kTp, Axis::kCp, Axis::kExpertTp};

// What the ranks along an axis hold of a value or of what is added to a gradient.
struct Held {
  AxisLayout::State state = AxisLayout::State::kReplicated;
  int dim = 0;
  bool zigzag = false;
  bool operator==(const Held&) const = default;
};
Held HeldOver(const ValueType& type, Axis axis);
Held HeldOver(const Layout& layout, Axis axis);
std::string HeldText(const Held& held);  // "cut along dim 0", "whole", "a partial sum"

// What is wrong with the layouts of a compute instruction over `axis` (of size above 1), or "". `gradients`, if given,
// receives what the ranks along the axis add to each gradient slot: a part, a term of a sum, or the same whole.
std::string LayoutProblem(const TypedInstruction& typed, Axis axis, std::vector<Held>* gradients = nullptr);

// What is wrong with a value's layout and that of its gradient taken together, or "": a cut value has a gradient that
// is cut alike, a partial sum one that is whole, a whole value one that is whole or a partial sum.
std::string GradientLayoutProblem(const ValueType& type, Axis axis);

}  // namespace planwright
