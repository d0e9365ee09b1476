// A run, from its first life to its last one, wherever its ranks are (rank_starter.h).
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/run/launch/launch_life.h"
#include "planner/run/launch/rank_starter.h"
#include "planner/run/launch/run_options.h"
#include "planner/wire/records/outcome.h"

namespace planwright {

// Runs `plans`: the plan, and then those to fall back to when nodes are lost; each is for fewer nodes than the one
// before. Each life is launched (LaunchLife), what it left is gathered (GatherOutcome), and outcome.json is written
// into RUN. A plan with checkpoints goes on with the run that RUN holds. An interrupted one saves and ends with
// kExitPreempted. One that fails begins its next life by itself, as often as LaunchPlan::restarts says
// (restart_policy.h). A run that failed for good is an Outcome, and so is one whose ranks could not be started. Errors
// are those of a RUN that cannot be written, or that holds a run which cannot be taken up (AlreadyExists;
// run_directory.h).
absl::StatusOr<Outcome> LaunchRun(const std::vector<Plan>& plans, const RunOptions& options, RankStarter& starter,
                                  const Terminal& terminal);

}  // namespace planwright
