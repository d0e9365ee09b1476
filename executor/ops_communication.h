// Handlers of communication instructions: the only ones that are given a communicator.
#pragma once

#include "executor/action.h"
#include "executor/rank.h"

namespace planwright::executor {

// Finds the communicator, and the state ("$", "%") that is moved in place.
Action BindCommunication(const LinkedInstruction& instruction, Rank& rank);

}  // namespace planwright::executor
