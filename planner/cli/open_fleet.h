// `--agents`: the head waits for an agent on each node, and then starts ranks through them.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/run/agents/fleet.h"
#include "planner/run/launch/launch_life.h"
#include "planner/wire/records/outcome.h"

namespace planwright {

// The path without "." and "..", from the root. An empty one stays empty.
std::string AbsolutePath(const std::string& path);

// Opens a fleet whose file is FOLDER/job/head.json, says on the terminal what to run on the nodes, and waits until
// there is an agent on each node that the plan needs. `gone`: set where they did not come, or a signal did; there is
// no fleet then, and nothing is left of it. Errors are those of addresses and files.
absl::StatusOr<std::unique_ptr<Fleet>> OpenFleet(const Plan& plan, const std::string& folder, const Terminal& terminal,
                                                 std::optional<Outcome>& gone);

}  // namespace planwright
