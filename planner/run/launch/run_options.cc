#include "planner/run/launch/run_options.h"

#include <unistd.h>

#include <algorithm>

#include "planner/run/launch/recipe_environment.h"
#include "planner/state/checkpoint/own_paths.h"
#include "planner/wire/records/routing_folder.h"

namespace planwright {

int64_t StepsOf(const Plan& plan, const RunOptions& options) {
  return std::min(plan.budget.steps, options.steps.value_or(plan.budget.steps));
}

bool Keeps(const Plan& plan, const RunOptions& options) { return plan.checkpoint.every_steps > 0 && !options.trial; }

bool Saves(const Plan& plan, const RunOptions& options) { return Keeps(plan, options) && StepsOf(plan, options) > 0; }

bool OnGpus(const Plan& plan, const RunOptions& options) {
  return options.device.empty() ? plan.cluster.gpu != "none" : options.device == "cuda";
}

absl::Status CheckRun(const Plan& plan, const RunOptions& options) {
  if (access(options.executor.c_str(), X_OK) != 0) {
    return absl::NotFoundError(
        "there is no executor program at " + options.executor +
        " (`./dev build` makes it beside `plan`, and a package has both; or name another with --executor)");
  }
  if (absl::Status there = VariablesOfRecipe(plan.launch, options.passed_on).status(); !there.ok()) return there;
  if (absl::Status free = CheckFreeForRun(options.run_dir); !free.ok()) return free;
  // Not in a life: an index, or the files of a job, may have been written into the folder since.
  if (absl::Status free = CheckNoOtherFolder(options.run_dir); !free.ok()) return free;
  if (!options.probe_dir.empty()) {
    if (absl::Status free = CheckFreeForProbe(options.probe_dir); !free.ok()) return free;
  }
  if (options.profile) {
    if (absl::Status status = CheckStepRange(*options.profile, StepsOf(plan, options)); !status.ok()) return status;
  }
  // The choices of the steps that are done would be missing in the record.
  if (!options.record_routing.empty() && access((options.run_dir + "/lives").c_str(), F_OK) == 0) {
    return absl::InvalidArgumentError("--record-routing takes a run from its first step, and " + options.run_dir +
                                      " holds one that goes on; choose another --run-dir");
  }
  if (!options.record_routing.empty() && plan.initialize && plan.initialize->schedule == "checkpoint") {
    return absl::InvalidArgumentError(
        "--record-routing takes a run from its first step, and with initialize.schedule checkpoint this one begins "
        "later; use schedule: recipe, or leave out --record-routing");
  }
  if (!options.record_routing.empty()) return CheckRecordRouting(plan, options.record_routing);
  if (!options.replay_routing.empty()) return CheckReplayRouting(plan, StepsOf(plan, options), options.replay_routing);
  return absl::OkStatus();
}

}  // namespace planwright
