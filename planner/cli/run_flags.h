// The options that commands have in common which start ranks: `plan launch`, `plan evaluate` and `plan measure`.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "planner/cli/option.h"
#include "planner/cli/own_program.h"
#include "planner/run/launch/run_options.h"

namespace planwright {

struct RunFlags : CommandOptions {
  bool local = false, slurm = false, dry_run = false, agents = false;
  bool accept_changes = false;
  RunOptions run{.executor = ExecutorBesidePlan()};
};

Option SlurmOption();
Option DryRunOption();
Option AgentsOption();
Option DeviceOption(std::string help);
Option ExecutorOption();

// InvalidArgument, for the user: --local, --slurm, --agents and --dry-run do not go together as they are.
absl::Status CheckWay(const RunFlags& flags);

}  // namespace planwright
