// The processes of one life of a run, one for each rank: on this machine (local_processes.h), or on the nodes of agents
// (planner/run/agents/fleet.h). Supervise (supervise.h) watches them without knowing where they are.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "planner/wire/records/recorder_reader.h"

namespace planwright {

// Something that the supervisor must know.
struct ProcessEvent {
  enum class Kind {
    kEnded,    // with `exit_status`, or by `signal` if that is not 0. `text`: where the kernel has killed processes for
               // memory meanwhile (MemoryKills::where), if `signal` is SIGKILL; empty: nowhere
    kStopped,  // by SIGSTOP or its like
    kContinued,    // after that
    kLine,         // printed `text`, without its line break
    kUnreachable,  // nothing is known of the process any more: its node is lost, for the reason in `text`
    kInterrupt,    // this program, or an agent, received `signal`: the run shall end. `rank` is -1
    kEndComes,     // an agent received SIGTERM: a batch system ends the job, and kills all of it soon. `rank` is -1
  };
  Kind kind = Kind::kEnded;
  int rank = -1;
  int exit_status = 0, signal = 0;
  bool is_error = false;  // of kLine: standard error
  std::string text;
};

class Processes {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~Processes() = default;
  virtual int count() const = 0;
  // Sends a signal to all processes that live, and to what they started. It also wakes those that are stopped.
  virtual void Signal(int number) = 0;
  // Waits until something happens or `until` has come, and tells what happened. For each process that was started, the
  // last event of all is kEnded or kUnreachable.
  virtual std::vector<ProcessEvent> Wait(const std::optional<Clock::time_point>& until) = 0;
  // Where a rank is, or was when it ended; none if it wrote no recorder pages.
  virtual std::optional<RankPosition> Position(int rank) = 0;
};

}  // namespace planwright
