// Runs commands on this machine under the supervisor, as a launch runs its ranks, but without a run directory.
#pragma once

#include <memory>
#include <numeric>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/run/launch/local_processes.h"
#include "planner/run/launch/supervise.h"

namespace planwright::testing {

inline absl::StatusOr<Supervision> SuperviseCommands(const std::vector<Command>& commands, const LineSink& sink,
                                                     const SupervisionTimes& times = {}, bool forks = false) {
  std::vector<int> ranks(commands.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  const absl::StatusOr<std::unique_ptr<LocalProcesses>> processes = LocalProcesses::Start(commands, ranks, "", forks);
  if (!processes.ok()) return processes.status();
  return Supervise(**processes, sink, times);
}

}  // namespace planwright::testing
