// A run whose ranks are processes of this machine.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/run/launch/launch_life.h"
#include "planner/run/launch/run_options.h"
#include "planner/wire/records/outcome.h"

namespace planwright {

// LaunchRun (run/launch_run.h) here. Errors are its own, and those of the address and the key of the store.
absl::StatusOr<Outcome> RunHere(const std::vector<Plan>& plans, const RunOptions& options, const Terminal& terminal);

}  // namespace planwright
