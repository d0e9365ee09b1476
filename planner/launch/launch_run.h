// A run, from its first life to its outcome, wherever its ranks are (rank_starter.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/launch/outcome.h"
#include "planner/launch/rank_starter.h"
#include "planner/plan/plan.h"
#include "planner/run_files/trace.h"

namespace planwright {

struct RunOptions {
  std::string executor;              // path of the executor program
  std::string run_dir;               // created if it does not exist
  std::string probe_dir;             // empty: no probe
  std::string device;                // "cpu" or "cuda"; empty: as the recipe's `cluster` says
  std::optional<int64_t> steps;      // stop after this many steps; nullopt: run the whole budget
  std::optional<StepRange> profile;  // the steps to profile; nullopt: none
  // Folders for the experts that tokens chose: to write to, and to take from instead of choosing. Empty: neither; at
  // most one is set.
  std::string record_routing, replay_routing;
};

// Receives each line that a rank prints: rank 0's standard output as it is, everything else as "[rank 3] line".
using Terminal = std::function<void(bool is_error, std::string_view line)>;

// The run directory of a launch without --run-dir: runs/NAME-20251120T135057.
std::string DefaultRunDirectory(const Plan& plan);

// NotFound if there is no executor program, InvalidArgument if the run has not all the steps to profile or would record
// choices of a run that goes on, and the errors of the checks of routing_folder.h. Call it first, so that a launch that
// fails leaves no run directory.
absl::Status CheckRun(const Plan& plan, const RunOptions& options);

// Runs `plans`: the plan, and then those to fall back to when nodes are lost; each is for fewer nodes than the one
// before. Starts `EXECUTOR --plan RUN/plan.json --run-dir RUN [--life N] [--probe DIR] [--device D] [--steps N]
// [--trace STEPS]` for each rank, with that rank's environment (rank_environment.h), and supervises the processes.
// Writes plan.json, logs/rankNNNN.out and outcome.json into RUN. With a probe, it joins the ranks' parts at the end
// (assemble_probe.h). With a profile, it sums up the ranks' traces (run_profile.h). With record_routing, it writes
// routing.json (routing_folder.h). A plan with checkpoints goes on with the run that RUN holds. An interrupted one
// saves and ends with kExitPreempted. One that fails begins its next life by itself, as often as
// LaunchPlan::restarts says (restart_policy.h). A run that failed for good is an Outcome. Errors are those of this
// machine: files, processes, or a RUN that holds a run which cannot be taken up (AlreadyExists; run_directory.h).
absl::StatusOr<Outcome> LaunchRun(const std::vector<Plan>& plans, const RunOptions& options, RankStarter& starter,
                                  const Terminal& terminal);

}  // namespace planwright
