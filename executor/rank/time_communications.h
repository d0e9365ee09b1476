// `--rounds FILE`: after its steps a rank times communications again and again, with its peers
// (planner/wire/records/communication_rounds.h).
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "executor/communication/communicator.h"
#include "executor/rank/training.h"

namespace planwright::executor {

// By ranks on a node and nodes of a group.
using TimedGroups = std::map<std::pair<int, int>, std::unique_ptr<Communicator>>;

// Runs the rounds of the file and writes RUN/rounds. Does nothing without the option. All ranks must call it, when
// their steps are done and their device is as warm as in a step. Exits with kExitUsage if the file cannot be read, and
// with kExitStorage if the times cannot be written. Throws what communication throws. `groups` gets
// the communicators: they must live until all ranks are done, as peers may still work when this one is ready.
void TimeCommunications(const TrainingParts& parts, TimedGroups& groups);

}  // namespace planwright::executor
