// Handlers of state instructions: weights, sums over the step, the optimizer, the log.
#pragma once

#include "executor/action.h"
#include "executor/rank.h"
#include "executor/step_reports.h"

namespace planwright::executor {

// Finds the sums, modules and buckets that the instruction names. `module`: that of the block it stands in, null if
// there is none. The module must be allocated, unless this is what allocates it. Keeps references.
Action BindState(const LinkedInstruction& instruction, const Module* module, Rank& rank, StepReports& reports);

}  // namespace planwright::executor
