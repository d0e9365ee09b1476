#include "planner/cli/local_run.h"

#include "planner/run/launch/local_starter.h"
#include "planner/run/launch_run.h"

namespace planwright {

absl::StatusOr<Outcome> RunHere(const std::vector<Plan>& plans, const RunOptions& options, const Terminal& terminal) {
  absl::StatusOr<LocalStarter> here = LocalStarter::Open(plans[0].launch.interface);
  if (!here.ok()) return here.status();
  return LaunchRun(plans, options, *here, terminal);
}

}  // namespace planwright
