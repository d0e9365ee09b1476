#include "planner/cli/local_run.h"

#include "planner/connection/proof.h"
#include "planner/launch/local_starter.h"
#include "planner/lives/launch_run.h"
#include "planner/rendezvous/own_address.h"

namespace planwright {

absl::StatusOr<Outcome> RunHere(const std::vector<Plan>& plans, const RunOptions& options, const Terminal& terminal) {
  const absl::StatusOr<std::string> address = LocalStoreAddress(plans[0].launch.interface);
  if (!address.ok()) return address.status();
  const absl::StatusOr<std::string> key = MakeSecret();
  if (!key.ok()) return key.status();
  LocalStarter here(*address, *key);
  return LaunchRun(plans, options, here, terminal);
}

}  // namespace planwright
