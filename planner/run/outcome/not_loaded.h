// A rank that ended before a line of its program ran: its libraries could not be loaded.
#pragma once

#include "planner/run/launch/supervise.h"
#include "planner/wire/records/outcome.h"

namespace planwright {

// Such a rank ends with exit status 127, or by SIGABRT where a library asked for memory, and no program of ours has
// said why. Its last lines do: kExitHostMemory if memory was refused, else kExitUsage for a program that cannot be
// loaded.
// Other outcomes stay. `end`: of the rank that outcome.failure names, whose last lines are there.
void TellIfNotLoaded(const ProcessEnd& end, Outcome& outcome);

}  // namespace planwright
