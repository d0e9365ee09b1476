// Whether an evaluation computes the model that a checkpoint was trained as. Weights fit by their shapes alone; numbers
// such as moe.scale have none.
#pragma once

#include "absl/status/status.h"
#include "planner/plan/plan.h"
#include "planner/state/checkpoint/run_lives.h"

namespace planwright {

// Compares the model of the plan with that of the plan in the checkpoint, except what only training asks for, and
// prints what differs. InvalidArgument if something does and the user has not accepted that; DataLoss if the checkpoint
// is damaged.
absl::Status CheckEvaluatedModel(const Plan& plan, const FoundCheckpoint& checkpoint, bool accepted);

}  // namespace planwright
