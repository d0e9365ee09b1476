#include "planner/cli/open_fleet.h"

#include <filesystem>

#include "planner/base/files/exit_status.h"
#include "planner/base/files/file_io.h"
#include "planner/base/text/status_macros.h"
#include "planner/cli/own_program.h"
#include "planner/run/slurm/job_script.h"
#include "planner/wire/records/run_timeout.h"
#include "planner/wire/rendezvous/interface_address.h"
#include "planner/wire/rendezvous/own_address.h"

namespace planwright {

std::string AbsolutePath(const std::string& path) {
  std::error_code error;
  return path.empty() ? path : std::filesystem::absolute(path, error).lexically_normal().string();
}

absl::StatusOr<std::unique_ptr<Fleet>> OpenFleet(const Plan& plan, const std::string& folder, const Terminal& terminal,
                                                 std::optional<Outcome>& gone) {
  const std::string& interface = plan.launch.interface;
  ABSL_ASSIGN_OR_RETURN(const std::string address, interface.empty() ? OwnAddress() : InterfaceAddress(interface));
  ABSL_ASSIGN_OR_RETURN(const std::chrono::milliseconds timeout, RunTimeout());
  const std::string file = folder + "/job/head.json";
  ABSL_RETURN_IF_ERROR(MakeDirectories(folder + "/job"));
  const auto leave_nothing = [&folder] {
    std::error_code error;  // a folder that is not empty stays
    for (const std::string& made : {folder + "/job", folder}) std::filesystem::remove(made, error);
  };
  absl::StatusOr<std::unique_ptr<Fleet>> opened = Fleet::Open({.address = address, .file = file});
  if (!opened.ok()) {
    leave_nothing();
    return opened.status();
  }
  std::unique_ptr<Fleet> fleet = *std::move(opened);
  const int nodes = NodesOfPlan(plan);
  terminal(true, "waiting for " + std::to_string(nodes) + (nodes == 1 ? " agent" : " agents") +
                     "; on each node run: " + OwnProgram() + " agent " + file);
  int interrupted = 0;
  const absl::Status came = fleet->WaitForAgents(
      nodes, timeout, [] { return std::string(); }, interrupted);
  if (interrupted != 0) gone = Outcome{128 + interrupted, std::string(came.message())};
  if (interrupted == 0 && !came.ok()) gone = Outcome{kExitPeerLost, std::string(came.message())};
  if (!gone) return fleet;
  fleet.reset();
  leave_nothing();
  return fleet;
}

}  // namespace planwright
