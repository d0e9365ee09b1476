// What a launch looks at before its first rank is started: a mistake is told once, by the launcher, and leaves no run
// directory.
#pragma once

#include <optional>

#include "planner/plan/plan.h"
#include "planner/run/launch/run_options.h"

namespace planwright {

struct LaunchWay {
  bool here = false;     // ranks run on this machine
  bool yes = false;      // questions are answered
  bool as_json = false;  // the outcome of a run that is done is printed as JSON
};

// Whether the run in its directory is done already, whether weights and recorded batches fit the plan, and whether the
// executor and this machine can run it. Tells what is wrong on stderr. Returns the exit status if no rank shall start;
// kExitSuccess of a run that is done.
std::optional<int> CheckBeforeRanks(const Plan& plan, const RunOptions& options, const LaunchWay& way);

}  // namespace planwright
