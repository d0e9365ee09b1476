// The first step in the life of a rank: what it is asked to do, by its command line, its plan and its environment.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <string>

#include "executor/communication/rendezvous.h"
#include "executor/rank/options.h"
#include "executor/telemetry/start_up.h"
#include "planner/plan/plan.h"
#include "planner/predict/estimate/deadlines.h"

namespace planwright::executor {

struct Assignment {
  RankOptions options;
  Plan plan;
  Environment environment;  // MeetPeers completes it (peers.h)
  int64_t steps = 0;        // of the plan, that are to be done when this life ends
  DeadlineRule deadlines;   // PLANWRIGHT_TIMEOUT_SECONDS replaces those of the plan

  int rank() const { return environment.rank; }
  const Role& role() const { return *plan.RoleOf(environment.rank); }
  // "rank 3 on node1: ", for messages.
  std::string self() const;
};

// `prepare`: see RankMainHooks. InvalidArgument if options, plan or environment cannot be used, or do not go together.
absl::StatusOr<Assignment> ReadAssignment(int argc, const char* const* argv,
                                          const std::function<absl::Status(Plan&)>& prepare, StartUp& start_up);

}  // namespace planwright::executor
