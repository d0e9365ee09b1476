// Where the time of a step went: the sum over the parts that ranks wrote for `--trace` (planner/run_files/trace.h).
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "planner/estimate/step_time.h"
#include "planner/plan/plan.h"
#include "planner/run_files/run_profile.h"

namespace planwright {

// Sums up the parts of all ranks. `time`: the predicted step of the plan, for the same rows. Error, with the file: a
// trace that is not there or cannot be read.
absl::StatusOr<RunProfile> ReadRunProfile(const Plan& plan, const StepTime& time, const std::string& run_dir);

}  // namespace planwright
