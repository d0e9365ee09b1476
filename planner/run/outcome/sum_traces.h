// Where the time of a step went: the sum over the parts that ranks wrote for `--trace` (planner/wire/records/trace.h).
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/predict/estimate/step_time.h"
#include "planner/wire/records/run_profile.h"

namespace planwright {

// Sums up the parts of all ranks. `time`: the predicted step of the plan, for the same rows. Error, with the file: a
// trace that is not there or cannot be read. Cancelled: as of JoinTraces (join_traces.h).
absl::StatusOr<RunProfile> ReadRunProfile(const Plan& plan, const StepTime& time, const std::string& run_dir,
                                          const std::function<bool()>& stop = {});

}  // namespace planwright
