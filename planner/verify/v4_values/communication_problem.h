// V4 of instructions that change which rank holds what: collectives inside a block, and the slices that a rank takes of
// its own value. What is gathered must be cut before, what is reduced must be a partial sum (V6), and sizes must follow
// from the size of the group. For what kinds do to layouts see `moves` in planner/plan/ops.def; those that move rows,
// or several dims at once, have their rules here.
//
// Collectives on state (gradient buckets, weights, sums of the step) are judged by VerifyUpdates.
#pragma once

#include <string>

#include "planner/verify/shared/typed_instruction.h"

namespace planwright {

struct RuleProblem {
  const char* rule = "V4";  // or "V6"
  std::string what;         // empty: nothing is wrong
};

// How a value that is partial may be reduced. The maxima of parts of the vocabulary by max: a sum of them means
// nothing. What is relative to such a maximum not at all: the ranks have different ones. Terms for the tokens of all ep
// ranks by scatter_tokens alone, and nothing else by it: no layout says over ep what is such a term.
enum class Reduction { kSum, kMaximum, kNone, kScatterTokens };

// `module`: of the block. `reduction`: that of the input.
RuleProblem CommunicationProblem(const TypedInstruction& typed, const PlanIndex& index, const Module& module,
                                 Reduction reduction);

}  // namespace planwright
