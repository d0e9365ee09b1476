// An instruction with the types of its operands, as one rank and its neighbours along each axis hold them.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/instruction.h"
#include "planner/verify/shared/plan_index.h"

namespace planwright {

// A rule that cannot find the type of an input makes none of these: VerifyValues reports the name.
struct TypedInstruction {
  const Instruction* instruction = nullptr;
  std::vector<const ValueType*> inputs;
  std::vector<Slot> parameters, gradients;
};

// Axes that cut values. Along dp every lane has values of its own, along ep and expert_dp rows of its own, along pp
// other layers.
inline constexpr Axis kLayoutAxes[] = {Axis::kTp, Axis::kCp, Axis::kExpertTp};

// What the ranks along an axis hold of a value, or of what is added to a gradient.
struct Held {
  AxisLayout::State state = AxisLayout::State::kReplicated;
  int dim = 0;
  bool zigzag = false;
  bool operator==(const Held&) const = default;
};
Held HeldOver(const ValueType& type, Axis axis);
Held HeldOver(const Layout& layout, Axis axis);
std::string HeldText(const Held& held);  // "cut along dim 0", "whole", "a partial sum"

// Whether two types agree in everything: dtype, dims, layout, layout of the gradient, and place in memory.
bool SameType(const ValueType& a, const ValueType& b);

// The type of a value of a block: an input, a value taken from the forward, or one that an instruction makes. Null: the
// block has no such value.
const ValueType* TypeOfValue(const Block& block, const std::string& name);

std::string DimText(const Dim& dim);           // "4096", or the name of a run-time size
std::string ShapeText(const ValueType& type);  // "bf16[4096,1,2688]"

}  // namespace planwright
