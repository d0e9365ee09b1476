// V5 of forwards beside the comparison of forward and backward: what a piece without a backward declares, and that a
// forward which runs again is the first one.
#pragma once

#include <string>
#include <vector>

#include "planner/verify/shared/microbatch_calls.h"
#include "planner/verify/shared/plan_index.h"
#include "planner/verify/verify.h"

namespace planwright {

// A value of the forward declares a gradient where one comes to it. What is wrong, to follow "whose", or "".
std::string DeclarationProblem(const Output& value, bool takes);

// Where nothing learns no gradient is made. What is declared all the same is the layout of the value itself, and whole
// where the value is a partial sum. What is wrong, as above.
std::string LayoutOfNoneProblem(const Output& value);

// A piece without a backward declares what it would if what it returns took gradients: all that computes read, the
// stream of the layers, but not what a bridge carries away. Stages only hand values on, and V4 compares both sides.
void CheckForwardAlone(const PlanIndex& index, const FramePair& pair, std::vector<Violation>& violations);

// A forward that runs again (activation recompute) takes what was saved and does what the forward did.
void CheckRunAgain(const PlanIndex& index, const Block& forward, const Block& again,
                   std::vector<Violation>& violations);

}  // namespace planwright
