// Watches the processes of a run. If one fails, the others are ended within a bounded time. The result tells the
// failure that was the cause from those that followed from it.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/run/launch/processes.h"

namespace planwright {

// How a process ended.
struct ProcessEnd {
  int child = 0;                 // its rank
  int exit_status = 0;           // valid if `signal` is 0
  int signal = 0;                // that killed it; 0: it exited
  bool sent_by_us = false;       // the supervisor sent that signal
  std::string unreachable = {};  // why nothing is known of it: its node is lost. Empty: it ended
  std::string memory = {};       // where the kernel killed processes for memory (ProcessEvent::text); empty: nowhere

  bool failed() const { return signal != 0 || exit_status != 0 || !unreachable.empty(); }
};

struct Supervision {
  std::vector<ProcessEnd> ends;     // in the order in which the supervisor noticed them
  std::optional<ProcessEnd> cause;  // the first failure, from which the others followed; nullopt: none failed by itself
  std::optional<int> stopped;       // a child that was stopped (SIGSTOP) when the run began to end, or for too long
  // The first SIGINT, SIGTERM, SIGUSR1, SIGHUP, SIGQUIT or SIGPIPE that the supervisor or an agent received; 0: none.
  int interrupted_by = 0;
  bool out_of_time = false;  // the children were still saving when SupervisionTimes::until_killed was over

  // A rank ended by the request to save: it was still starting, so no rank had done a step, and there was nothing to
  // save. What the others then ended with follows from it.
  bool ended_at_start() const;
};

struct SupervisionTimes {
  // From the first failure to kEndSignal for the others. During this time the real cause can still show up: a rank that
  // lost its peer may end before the peer does.
  std::chrono::milliseconds settle{300};
  // From kEndSignal to SIGKILL.
  std::chrono::milliseconds grace{1200};
  // Above 0: the children can save their work. The first signal to the supervisor then becomes SIGUSR1 for them, and
  // they have so long to end by themselves; a second signal kills them.
  std::chrono::milliseconds save{0};
  // Asked then: how much longer they may need, as each goes on until its step, or its round of an evaluation, is done.
  // Null: not at all.
  std::function<std::chrono::milliseconds()> until_they_stop = {};
  // Called at the first signal, once it is passed on. `saves`: the children were asked to save their work. Null: nobody
  // is told.
  std::function<void(bool saves)> interrupted = {};
  // From kEndComes to the end of what the children may save, as the batch system kills all soon after: an end that can
  // be told is better than none. 0: nobody knows.
  std::chrono::milliseconds until_killed{0};
  // How long a child may stay stopped (SIGSTOP) before the run is ended.
  std::chrono::milliseconds stopped{600000};
};

// A line of a child's output, without its line break.
using LineSink = std::function<void(int rank, bool is_error, std::string_view line)>;

// Returns when all processes have ended or are unreachable. A process whose end may follow from that of another
// (MayFollowFromAnother) is the cause only if no process failed in another way.
Supervision Supervise(Processes& processes, const LineSink& sink, const SupervisionTimes& times = {});

}  // namespace planwright
