// The run of one part of a measurement.
#pragma once

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/run/launch/rank_starter.h"
#include "planner/run/launch/run_options.h"
#include "planner/wire/records/outcome.h"

namespace planwright {

// A part that took longer than this is ended, and is an error.
inline constexpr int kLongestPartSeconds = 8 * 60;

// Runs a plan with `starter`, or with null on this machine. What ranks print is only in their logs. DeadlineExceeded if
// it took too long; other errors are those of LaunchRun.
absl::StatusOr<Outcome> RunPart(const Plan& plan, const RunOptions& run, RankStarter* starter);

}  // namespace planwright
