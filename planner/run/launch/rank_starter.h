// Who starts the ranks of a run, and where: on this machine (local_starter.h), or through agents on other nodes
// (planner/run/agents/fleet.h). Everything else of a launch is the same (launch_run.h).
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "planner/run/launch/processes.h"
#include "planner/run/launch/rank_program.h"

namespace planwright {

class RankStarter {
 public:
  virtual ~RankStarter() = default;
  // The address of this machine at which the ranks find the store.
  virtual std::string address() const = 0;
  // The secret of which those of the lives' stores are made (SecretOfLife). Whoever starts ranks has it.
  virtual const std::string& key() const = 0;
  // Plans for at most so many nodes can be run. It may shrink when nodes are lost.
  virtual int nodes() = 0;
  // Starts the processes of a life. Unavailable, ResourceExhausted or NotFound if that fails; what was started has
  // ended then.
  virtual absl::StatusOr<std::unique_ptr<Processes>> Start(const RankProgram& program) = 0;
  // Waits between two lives, and keeps alive what they need. Returns the signal that ended the wait, or 0.
  virtual int Pause(std::chrono::milliseconds time) = 0;
};

}  // namespace planwright
