// What a run with `--trace` measured: the times of its instructions, by what they are uses of.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "planner/plan/plan.h"
#include "planner/run/measure/measurements.h"

namespace planwright {

// Adds the instructions of all traced steps of all ranks in RUN/trace, which ran on the nodes that the plan's cluster
// says. A communication takes from the arrival of its last member on; clocks of several machines are aligned for it.
// `on_host`: ranks compute on CPUs, where the host runs the main stream itself.
// Error, with the file: a trace that is not there, cannot be read, or is not of this plan.
absl::Status MeasureTraces(const Plan& plan, const std::string& run_dir, bool on_host, Measurements& into);

}  // namespace planwright
