// `plan launch --local`: every rank of a plan as a process of this machine.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "planner/launch/outcome.h"
#include "planner/plan/plan.h"

namespace planwright {

struct LocalLaunch {
  std::string executor;          // path of the executor program
  std::string run_dir;           // made if need be; empty: runs/NAME-STAMP
  std::string probe_dir;         // empty: no probe
  std::string device;            // "cpu" or "cuda"; empty: what the recipe's cluster says
  std::optional<int64_t> steps;  // end after this many steps; nullopt: all of the budget
};

// What ranks print: rank 0's output as it is, all else as "[rank 3] line".
using Terminal = std::function<void(bool is_error, std::string_view line)>;

// Where a launch of `plan` goes without --run-dir: runs/NAME-20251120T135057.
std::string DefaultRunDirectory(const Plan& plan);

// NotFound: the executor is not there. Said before anything is made.
absl::Status CheckLocalLaunch(const LocalLaunch& launch);

// Starts `EXECUTOR --plan RUN/plan.json --run-dir RUN [--probe DIR] [--device D] [--steps N]` once a rank, in its
// environment (rank_environment.h), and supervises them. RUN gets plan.json, logs/rankNNNN.log and outcome.json. With a
// probe the ranks' parts are joined at the end (assemble_probe.h). An error is one of this machine (files, processes;
// AlreadyExists: RUN holds a run); a run that failed is an Outcome.
absl::StatusOr<Outcome> LaunchLocal(const Plan& plan, const LocalLaunch& launch, const Terminal& terminal);

}  // namespace planwright
