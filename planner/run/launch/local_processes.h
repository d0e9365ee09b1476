// Ranks as processes of this machine, and logs of what they print.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/run/launch/child_process.h"
#include "planner/run/launch/held_signals.h"
#include "planner/run/launch/line_pipe.h"
#include "planner/run/launch/memory_kills.h"
#include "planner/run/launch/processes.h"
#include "planner/run/launch/rank_fork.h"
#include "planner/run/launch/rank_logs.h"

namespace planwright {

class LocalProcesses : public Processes {
 public:
  // Starts a process for each command; `ranks` are their numbers. Errors are those of Start (child_process.h); what was
  // started is ended then. While this lives, signals to this program are events. What the ranks print is kept in
  // RUN/logs (rank_logs.h); with an empty `run_dir` it is not kept, and there are no positions. `forks`: of
  // RankProgram; the commands then differ in RANK and LOCAL_RANK alone.
  static absl::StatusOr<std::unique_ptr<LocalProcesses>> Start(const std::vector<Command>& commands,
                                                               const std::vector<int>& ranks, std::string run_dir,
                                                               bool forks);
  // Ends those that still live, and what they started. Then waits until what they printed is in their logs.
  ~LocalProcesses() override;

  int count() const override { return static_cast<int>(children_.size()); }
  void Signal(int number) override;
  std::vector<ProcessEvent> Wait(const std::optional<Clock::time_point>& until) override;
  std::optional<RankPosition> Position(int rank) override;

  // For those who wait for other descriptors too: which to wait for, and what happened, without waiting.
  std::vector<int> Descriptors();
  std::vector<ProcessEvent> Poll();
  // Those whose end was not told yet.
  int alive() const { return Living() + static_cast<int>(untold_.size()); }

  // A process that does not end so long after SIGKILL counts as ended: the kernel waits for a device or a file system
  // in it, perhaps for ever, and nobody may wait as long.
  void LeaveKilledAfter(std::chrono::milliseconds time) { patience_with_killed_ = time; }

 private:
  struct Child {
    int rank, pid;  // -1: not forked yet
    LinePipe output, errors;
    bool alive = true;
  };

  explicit LocalProcesses(std::string run_dir) : run_dir_(std::move(run_dir)) {}
  void Add(int rank, const ChildProcess& process);
  void Started(Child& child, int pid);
  // What became of ranks that are not forked yet.
  void TakeForked(std::vector<ProcessEvent>& events);
  void Take(Child& child, int status, std::vector<ProcessEvent>& events);
  void Reap(std::vector<ProcessEvent>& events);
  void LeaveKilled(std::vector<ProcessEvent>& events);
  // `ends`: those that were found to have ended in this turn. All that they printed is there.
  void DrainAll(const std::vector<ProcessEvent>& ends, std::vector<ProcessEvent>& events);
  // Whoever is told of an end finds in its log what the rank printed before.
  void TellEnds(std::vector<ProcessEvent>& events);
  int Living() const;

  struct UntoldEnd {
    ProcessEvent event;
    Clock::time_point until;  // then it is told, whatever the log does
  };

  const std::string run_dir_;
  std::optional<RankLogs> logs_;  // waits as the last one: a second signal may end this program meanwhile
  HeldSignals signals_;
  const MemoryKills kills_ = ReadMemoryKills();  // before the first process was started
  std::unique_ptr<RankFork> fork_;               // null: all ranks are processes of this one
  int fate_ = 0;                                 // what waitpid said last of its process
  std::vector<int> early_signals_;               // sent while there was one, for the ranks that it forks
  std::vector<Child> children_;
  std::chrono::milliseconds patience_with_killed_{60000};
  std::optional<Clock::time_point> killed_;  // when all were sent SIGKILL
  std::vector<UntoldEnd> untold_;
};

}  // namespace planwright
