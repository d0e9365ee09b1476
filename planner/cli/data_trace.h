// `plan data trace`: what samples contain, and where it comes from (docs/training/data.md#looking-at-samples).
#pragma once

#include "planner/cli/data_options.h"
#include "planner/plan/plan.h"

namespace planwright {

// Prints the samples that --sample, or --step and --lane, name. Returns an ExitStatus.
int TraceData(const Plan& plan, const DataOptions& options);

}  // namespace planwright
