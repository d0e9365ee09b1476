// Starts one process without a shell. It leads its own process group, writes into pipes, and dies with its parent.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace planwright {

struct Command {
  std::vector<std::string> arguments;    // the program's path first
  std::vector<std::string> environment;  // "NAME=value"; nothing is inherited
  // SIGUSR1 is blocked when the program starts, so one that comes early waits until the program listens for it.
  bool holds_stop_signal = false;
  // SIGTERM is ignored, also by what the program starts: who started it ends it by kEndSignal or SIGKILL. A rank does
  // the same by itself, but a batch system may send the signal before it has been loaded.
  bool outlives_sigterm = false;
  std::vector<int> cores = {};      // on which it may run; empty: all on which this process may
  std::vector<int> inherited = {};  // descriptors that it keeps, by the same numbers
};

struct ChildProcess {
  int pid = -1;
  int output = -1, errors = -1;  // read ends of pipes, non-blocking; the caller closes them
};

// The child has an empty standard input and default signal handling. It gets SIGKILL when the calling process dies.
// Errors: no pipe or process left (ResourceExhausted); the program cannot be executed (NotFound).
absl::StatusOr<ChildProcess> Start(const Command& command);

}  // namespace planwright
