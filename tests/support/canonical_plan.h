// One form of all plans that do the same work. A plan's digest covers the names of its values, and some orders and
// layouts that nothing depends on. The canonical digest does not: it stays where a change of the planner gives other
// words for the same work, and changes where the work does.
#pragma once

#include <string>

#include "planner/plan/plan.h"

namespace planwright::testing {

// The plan with these made one, in its blocks and in the lists of its roles:
//
//   names      A value is called by its index among those that its list defines: inputs, then outputs of instructions
//              ("v007"). A value that a block takes is called by the blocks that save it into the same frame, and by
//              what makes it there ("language.moe.forward:linear(shared_up) 0"). State, frames, slots and blocks keep
//              their names.
//   orders     `saved`, `takes` and the `frees` of an instruction are sets: they are sorted.
//   gradients  The layout of a gradient's own gradient is dropped: nothing differentiates twice. A value is a gradient
//              if it comes out of a backward kind, over a bridge or between stages in backward direction, or out of an
//              instruction that reads a gradient; through calls and their arguments too.
//   origins    gone, as from the digest.
//
// Everything else stays as it is: the order of instructions, operands, outputs and arguments, slots, types, layouts,
// attributes, groups, streams, where values are freed, probes, and all of the plan outside of blocks and roles. The
// result is to be compared, not to be run.
Plan CanonicalPlan(Plan plan);

// The digest of the canonical plan: 64 hex digits.
std::string CanonicalDigest(const Plan& plan);

}  // namespace planwright::testing
