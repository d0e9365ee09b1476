// V4 of instructions that change which rank holds what: collectives inside a block, and the slices that a rank takes of
// its own value. What is gathered must be cut before, what is reduced must be a partial sum (V6), and sizes must follow
// from the size of the group. For what kinds do to layouts see `moves` in planner/plan/ops.def; those that move rows,
// or several dims at once, have their rules here.
//
// Collectives on state (gradient buckets, weights, sums of the step) are judged by VerifyUpdates.
#pragma once

#include <string>

#include "planner/plan/op_signature.h"
#include "planner/verify/shared/typed_instruction.h"

namespace planwright {

struct RuleProblem {
  const char* rule = "V4";  // or "V6"
  std::string what;         // empty: nothing is wrong
};

// `module`: of the block. `reduction`: that of the input.
RuleProblem CommunicationProblem(const TypedInstruction& typed, const PlanIndex& index, const Module& module,
                                 Reduction reduction);

}  // namespace planwright
