// The last step in the life of a rank that did not fail.
#pragma once

#include "executor/rank/training.h"

namespace planwright::executor {

// Waits until the last checkpoint is published, closes the files, waits for the device, and then for the peers that
// still need this rank. `whole`: all steps are done; else the run was stopped as asked. Returns the exit status. Leaves
// with kExitStorage if a file cannot be written.
int FinishRun(const TrainingParts& parts, const Rank& rank, bool whole);

}  // namespace planwright::executor
