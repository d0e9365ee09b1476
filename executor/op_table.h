// Which function runs which compute instruction.
#pragma once

#include "executor/rank.h"

namespace planwright::executor {

// Null for a kind that is not kCompute.
ComputeHandler ComputeHandlerOf(OpKind kind);

}  // namespace planwright::executor
