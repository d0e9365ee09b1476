// What the plain and the fast form of the router share.
#pragma once

#include "planner/plan/instruction.h"

namespace planwright::executor::ops {

// Whether the weights of a token's experts are divided by their sum: what `normalized` of a route or route_grad says,
// and without it what ops.def says.
inline bool NormalizesWeights(const Instruction& instruction) {
  const int64_t* normalized = instruction.FindInteger("normalized");
  return normalized != nullptr ? *normalized != 0 : instruction.integer("top_k") > 1;
}

}  // namespace planwright::executor::ops
