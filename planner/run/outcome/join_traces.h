// The trace of a whole run: joins the parts that ranks wrote for `--trace` (planner/wire/records/trace.h), and puts
// what was planned beside what was measured (docs/profiling.md#the-trace).
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "planner/plan/plan.h"
#include "planner/predict/estimate/step_time.h"

namespace planwright {

// RUN/trace.json.gz
std::string RunTracePath(const std::string& run_dir);

// Writes it from the parts of all ranks. Times of ranks on other hosts are moved onto the clock of the first rank's
// host, as exactly as the wall clocks of the hosts agree. `time`: the predicted step of the plan. Where it is in
// seconds, each instruction has the time that it was predicted to take, and each rank tracks with the predicted step.
// InvalidArgument or Unavailable, with the file: a part is not there or cannot be read. ResourceExhausted: the trace
// cannot be written. Cancelled: `stop`, asked before each part, said so; null: never.
absl::Status JoinTraces(const Plan& plan, const StepTime& time, const std::string& run_dir,
                        const std::function<bool()>& stop = {});

}  // namespace planwright
