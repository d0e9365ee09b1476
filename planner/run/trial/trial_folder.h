// The folder of a trial, which is a run directory of its own: RUN.try beside the RUN that the launch would have. A
// later trial takes its place. No launch goes on with it, as it has no lives and no checkpoints.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "planner/plan/plan.h"
#include "planner/wire/records/rank_trial.h"

namespace planwright {

// "runs/a.try" of "runs/a".
std::string TrialFolder(const std::string& run_dir);

// The plan as a trial launches it: it is started once, in a job of at most ten minutes. Ranks do what the plan says, so
// its digest is the same.
Plan PlanOfTrial(Plan plan);

// Removes the trial that is in `folder`, and writes what ranks are asked there (RUN/trial). `here`: all ranks run on
// this machine. AlreadyExists if a trial runs there, or waits for its Slurm job, or if there is something else than a
// trial; errors of writing.
absl::Status PrepareTrial(const Plan& plan, const std::string& folder, const TrialFiles& files, bool here);

}  // namespace planwright
