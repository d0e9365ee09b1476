// The last step in the life of a rank that did not fail, and what it says of its GPU's memory
// (planner/wire/records/rank_memory.h).
#pragma once

#include <absl/status/status.h>

#include <map>
#include <string>

#include "executor/program/rank.h"
#include "executor/rank/training.h"
#include "planner/wire/records/rank_memory.h"

namespace planwright::executor {

// Waits until the last checkpoint is published, closes the files, waits for the device, and then for the peers that
// still need this rank. `whole`: all steps are done; else the run was stopped as asked. Returns the exit status. Exits
// with kExitStorage if a file cannot be written.
int FinishRun(const TrainingParts& parts, const Training& training, bool whole);

// Bytes of the tensors that a rank holds from setup to the end. Its number and the peaks stay 0.
RankMemory HeldMemory(const std::map<std::string, ModuleState>& modules);

}  // namespace planwright::executor
