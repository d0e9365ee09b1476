// Whether the executor and this machine are what a plan is for, before a rank is started.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "planner/plan/plan.h"
#include "planner/run/launch/run_options.h"

namespace planwright {

// Of a run on GPUs, and of one with launch.setup: asks the executor for its devices (`EXECUTOR --devices` prints "cpu",
// or "cuda N" with the number of GPUs that it sees), begun as a rank would be. InvalidArgument if a line of
// launch.setup fails, or a variable that launch.env passes on is not there; lines that would run in the image of a job
// are not tried. And InvalidArgument if it was built for CPUs, or if the ranks run `here` and there are fewer GPUs than
// ranks. OK if it does not answer: then the ranks say what is wrong.
absl::Status CheckExecutor(const Plan& plan, const RunOptions& options, bool here);

// Of ranks that would run here, on CPUs: what it means that there are more of them than cores; empty if there are not.
std::string TooFewCores(const Plan& plan, const RunOptions& options);

}  // namespace planwright
