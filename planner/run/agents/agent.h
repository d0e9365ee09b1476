// An agent: runs the ranks of its node for a head (fleet.h), and tells it what becomes of them. Started by srun or by
// hand (`plan agent`), it lives until the head ends it or is lost.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "absl/status/status.h"

namespace planwright {

// An automounter may need a moment.
inline constexpr std::chrono::seconds kSharedFolderPatience{5};

struct AgentOptions {
  std::string file;  // that the head has written, or will write
  int node = -1;     // number of this node; -1: the first that is free
  // The head wrote the file before it had this agent started. A node that does not even have the folder after
  // kSharedFolderPatience does not share it, and will not.
  bool file_is_written = false;
  // Told why there is no head yet, each time that this changes; may be empty.
  std::function<void(const std::string& why)> waits;
};

// Returns when the head says so. Unavailable: there was no head within the run's timeout (run_timeout.h), or it is
// lost; the ranks have ended then. FailedPrecondition: the head refuses this agent, or this node does not see the
// folder of the file. InvalidArgument: what is in the file, or at the address that it names, is no head of ours.
absl::Status RunAgent(const AgentOptions& options);

}  // namespace planwright
