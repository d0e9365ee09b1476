// One life of a run: its ranks start and are watched, wherever they are (rank_starter.h), until all have ended.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/run/launch/rank_starter.h"
#include "planner/run/launch/run_directory.h"
#include "planner/run/launch/run_options.h"
#include "planner/run/launch/supervise.h"

namespace planwright {

// Receives each line that a rank prints: rank 0's standard output as it is, everything else as "[rank 3] line".
using Terminal = std::function<void(bool is_error, std::string_view line)>;

struct EndedLife {
  const RunDirectory& directory;
  std::unique_ptr<Processes> processes;  // of the ranks; they tell where each one was
  Supervision supervision;
  double begun = 0;  // when its ranks were started, in seconds since 1970
};

// What LaunchLife starts for each rank, `launch.setup` before it included. `life`: its number.
std::vector<std::string> CommandOfRanks(const Plan& plan, const RunOptions& options, int life);

// Starts `EXECUTOR --plan RUN/plan.json --run-dir RUN [--life N] [--probe DIR] [--device D]
// [--try FILE] [--steps N] [--trace STEPS] [--record-routing DIR | --replay-routing DIR]` for each rank, with that
// rank's environment (rank_environment.h). Supervises the processes, prints their lines, and keeps them in
// logs/rankNNNN.out. `timeout`: of RunTimeout(). `directory` is that of the options. Errors: of RankStarter::Start, of
// the folders of the options, and InvalidArgument if a variable of the environment that changes deadlines has no value
// that can be used.
absl::StatusOr<EndedLife> LaunchLife(const Plan& plan, const RunOptions& options, const RunDirectory& directory,
                                     std::chrono::milliseconds timeout, RankStarter& starter, const Terminal& terminal);

}  // namespace planwright
