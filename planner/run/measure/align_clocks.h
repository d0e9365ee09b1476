// Traces of several machines on one clock.
#pragma once

#include <vector>

#include "planner/predict/simulate/replayed_step.h"
#include "planner/wire/records/trace.h"

namespace planwright {

// Moves the traces of other machines onto the clock of the first rank's: by their clocks of the day, and then so that
// no member of an all_reduce, all_gather, reduce_scatter or all_to_all is done before the last one has come. That
// leaves an interval, often of some ten microseconds, and its middle is taken. `traces`: by rank, each with all entries
// of each of its steps.
void AlignClocks(const RankPrograms& ranks, std::vector<Trace>& traces);

}  // namespace planwright
