// Handlers of communication instructions: the only ones that are given a communicator.
#pragma once

#include "executor/rank.h"
#include "executor/values.h"

namespace planwright::executor {

// Runs one communication instruction and returns its outputs. State values ("$", "%") are moved in place.
Tensors RunCommunication(const Instruction& instruction, const Values& values, Rank& rank);

}  // namespace planwright::executor
