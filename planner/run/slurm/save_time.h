// How long before the end of a job its head must know, so that a checkpoint can be written.
#pragma once

#include "planner/plan/plan.h"
#include "planner/run/launch/run_options.h"

namespace planwright {

// Seconds: a minute; until all ranks have stopped (SecondsUntilStop), or until the checkpoint is written that they may
// just have begun, if that takes longer; and the time of the last checkpoint: as long as the last ones that the run has
// published took, or, if there is none yet, what its bytes would take at 500 MB/s and node.
int SecondsToSave(const Plan& plan, const RunOptions& options);

}  // namespace planwright
