// Handlers of state instructions: weights, sums over the step, the optimizer, the log.
#pragma once

#include "executor/rank.h"
#include "executor/values.h"

namespace planwright::executor {

// `call` is the context of the block that the instruction stands in; `frame` its frame.
void RunState(const Instruction& instruction, const Values& values, const CallContext& call, const std::string& frame, Rank& rank);

}  // namespace planwright::executor
