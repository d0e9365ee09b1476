// V4 and V6 of instructions that change who holds what: collectives inside a block, and the local slice. What is
// reduced must be a sum to be finished, what is gathered must be cut, and the sizes follow the group's.
#pragma once

#include <string>

#include "planner/verify/shared/typed_instruction.h"

namespace planwright {

struct RuleProblem {
  const char* rule = "V4";
  std::string what;  // empty: none
};

// `module`: of the block. `maximum`: the input holds largest values of parts, whose sum means nothing. Instructions on
// state values (gradients, parameters, accumulators) are judged by VerifyUpdates.
RuleProblem CommunicationProblem(const TypedInstruction& typed, const PlanIndex& index, const Module& module,
                                 bool maximum);

}  // namespace planwright
