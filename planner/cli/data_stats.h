// `plan data stats`: how full sequences are, and what of each source the run trains on
// (docs/training/data.md#looking-at-samples).
#pragma once

#include "planner/cli/data_options.h"
#include "planner/plan/plan.h"

namespace planwright {

// Reads the texts of the first --samples samples (1,000 by default). Returns an ExitStatus.
int StatsOfData(const Plan& plan, const DataOptions& options);

}  // namespace planwright
