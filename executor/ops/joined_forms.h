// Forms that do two compute instructions at once (planner/plan/link/joins.def): the second reads, right behind the
// first, what the first makes as its first output. What nothing else reads is never written to memory. All of them are
// for GPUs; without one, the two instructions take the forms that they have by themselves (forms.h).
#pragma once

#include "executor/ops/forms.h"

namespace planwright::executor {

// Returns what the first instruction makes, but for its first output where the pair does not keep it (Join::kPasses),
// then what the second makes. An undefined tensor stands among the inputs of the second in the place of that output.
// Where the first may take over the memory of an input (ComputeContext::overwrites), any output may.
using JoinedHandler = Tensors (*)(const ComputeContext& first, const ComputeContext& second);

// Null: there is none for these instructions, by their planned types, their attributes and the device. Both take their
// fast forms by themselves, if they have any.
JoinedHandler ChooseJoinedForm(const ComputeBinding& first, const ComputeBinding& second);

}  // namespace planwright::executor
