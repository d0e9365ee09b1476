// Ranks that one process forks as soon as it has loaded its program (planner/wire/fork), and their way to become
// processes of this one.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/run/launch/child_process.h"
#include "planner/run/launch/pipe.h"
#include "planner/wire/fork/fork_request.h"

namespace planwright {

class RankFork {
 public:
  // Starts the process. The commands are those of `ranks`, the same but for RANK and LOCAL_RANK, and bind to no cores.
  // `pipes` get what each rank prints; their pids are -1 until Told says them. Errors: those of Start
  // (child_process.h).
  static absl::StatusOr<std::unique_ptr<RankFork>> Start(const std::vector<Command>& commands,
                                                         const std::vector<int>& ranks,
                                                         std::vector<ChildProcess>& pipes);
  // Ends the process and what is in its group, unless LetGo was called. Ranks that it forked are children of the caller
  // then, and end by themselves.
  ~RankFork();

  // Readable when there is something to take: ranks were forked, or the process has ended.
  std::vector<int> Descriptors() const;
  // The ranks that were forked since the last call.
  std::vector<ToldRank> Told();
  // What waitpid tells of the process, if anything.
  std::optional<int> Status();
  // The process has ended, and all that it forked were told.
  bool done() const { return pid_ < 0 && tell_.read < 0; }
  // Also wakes it if it is stopped. Not passed on to its ranks.
  void Signal(int number);
  // When it is done: the ranks go on.
  void LetGo();

 private:
  RankFork();

  const int before_;  // whether this process adopted orphans before
  int pid_ = -1, group_ = -1;
  int end_ = -1;  // a pidfd: SIGCHLD may go to a thread that does not hold it
  Pipe tell_, go_;
  size_t count_ = 0;
  bool let_go_ = false;
};

}  // namespace planwright
