// An agent: runs the ranks of its node for a head (fleet.h), and tells it what becomes of them. Started by srun or by
// hand (`plan agent`), it lives until the head ends it or is lost.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace planwright {

struct AgentOptions {
  std::string file;  // that the head has written, or will write
  int node = -1;     // number of this node; -1: the first that is free
};

// Returns when the head says so. Unavailable: there was no head within the run's timeout (run_timeout.h), or it is
// lost; the ranks have ended then. InvalidArgument: what is in the file, or at the address that it names, is no head of
// ours.
absl::Status RunAgent(const AgentOptions& options);

}  // namespace planwright
