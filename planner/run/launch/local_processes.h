// Ranks as processes of this machine, and logs of what they print.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/base/files/log_file.h"
#include "planner/run/launch/child_process.h"
#include "planner/run/launch/held_signals.h"
#include "planner/run/launch/line_pipe.h"
#include "planner/run/launch/memory_kills.h"
#include "planner/run/launch/processes.h"
#include "planner/run/launch/rank_fork.h"

namespace planwright {

// RUN/logs/rankNNNN.out: what the ranks of this machine print.
class RankLogs {
 public:
  RankLogs(const std::string& run_dir, const std::vector<int>& ranks);
  // Unavailable, with the path, if one of the files cannot be made.
  absl::Status Open();
  // When it is the first line of the rank that cannot be kept, a text that says so; else nothing. The run goes on.
  std::string Line(int rank, std::string_view line);

 private:
  std::map<int, LogFile> logs_;
};

class LocalProcesses : public Processes {
 public:
  // Starts a process for each command; `ranks` are their numbers. Errors are those of Start (child_process.h); what was
  // started is ended then. While this lives, signals to this program are events. What the ranks print is kept in
  // RUN/logs; with an empty `run_dir` it is not kept, and there are no positions. `forks`: of RankProgram; the commands
  // then differ in RANK and LOCAL_RANK alone.
  static absl::StatusOr<std::unique_ptr<LocalProcesses>> Start(const std::vector<Command>& commands,
                                                               const std::vector<int>& ranks, std::string run_dir,
                                                               bool forks);
  // Ends those that still live, and what they started.
  ~LocalProcesses() override;

  int count() const override { return static_cast<int>(children_.size()); }
  void Signal(int number) override;
  std::vector<ProcessEvent> Wait(const std::optional<Clock::time_point>& until) override;
  std::optional<RankPosition> Position(int rank) override;

  // For those who wait for other descriptors too: which to wait for, and what happened, without waiting.
  std::vector<int> Descriptors() const;
  std::vector<ProcessEvent> Poll();
  int alive() const;

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
  void DrainAll(std::vector<ProcessEvent>& events);

  const std::string run_dir_;
  HeldSignals signals_;
  const MemoryKills kills_ = ReadMemoryKills();  // before the first process was started
  std::optional<RankLogs> logs_;
  std::unique_ptr<RankFork> fork_;  // null: all ranks are processes of this one
  int fate_ = 0;                    // what waitpid said last of its process
  std::vector<int> early_signals_;  // sent while there was one, for the ranks that it forks
  std::vector<Child> children_;
  std::chrono::milliseconds patience_with_killed_{60000};
  std::optional<Clock::time_point> killed_;  // when all were sent SIGKILL
};

}  // namespace planwright
