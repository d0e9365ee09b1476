// One process, started without a shell: its own process group, its output in pipes, and gone when its parent is.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace planwright {

struct Command {
  std::vector<std::string> arguments;    // the program's path first
  std::vector<std::string> environment;  // "NAME=value", the whole environment
};

struct ChildProcess {
  int pid = -1;
  int output = -1, errors = -1;  // read ends of pipes, non-blocking; the caller closes them
};

// The child leads a process group of its own, reads nothing, gets SIGKILL when the calling thread's process dies, and
// starts with default signal handling. A program that cannot be executed is an error here, not a dead child.
absl::StatusOr<ChildProcess> Start(const Command& command);

}  // namespace planwright
