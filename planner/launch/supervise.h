// Runs processes that belong together: all end well, or all are ended. Notices the first one that fails, ends the
// others within a bounded time, and says which failure was the cause and which only followed from it.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/launch/child_process.h"

namespace planwright {

// How a process ended.
struct ProcessEnd {
  int child = 0;            // index of its command
  int exit_status = 0;      // if it exited
  int signal = 0;           // if it was killed; 0: it exited
  bool sent_by_us = false;  // killed by a signal that the supervisor sent

  bool failed() const { return signal != 0 || exit_status != 0; }
};

struct Supervision {
  std::vector<ProcessEnd> ends;     // in the order in which they were noticed
  std::optional<ProcessEnd> cause;  // the failure that the others followed from; nullopt: none failed by itself
  // a child that was stopped (SIGSTOP) when the others began to end, or was for too long
  std::optional<int> stopped;
  int interrupted_by = 0;  // SIGINT, SIGTERM, SIGHUP or SIGQUIT that the supervisor got
};

struct SupervisionTimes {
  // From the first failure to SIGTERM for the others: a rank that lost its peer may be noticed before the peer's death
  // is.
  std::chrono::milliseconds settle{300};
  // From SIGTERM (or a signal passed on) to SIGKILL.
  std::chrono::milliseconds grace{1200};
  // From when a child was stopped (SIGSTOP) to the end of all, if nothing lets it go on.
  std::chrono::milliseconds stopped{600000};
};

// A line of a child's output, without its line break.
using LineSink = std::function<void(int child, bool is_error, std::string_view line)>;

// Returns when every process and its process group is gone. SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGCHLD are held for
// the calling thread meanwhile; call it from a single-threaded program. A process that exits with kExitPeerLost lost
// another one and is the cause only if nothing better is known.
absl::StatusOr<Supervision> Supervise(const std::vector<Command>& commands, const LineSink& sink,
                                      const SupervisionTimes& times = {});

}  // namespace planwright
