// A run directory: who may start a run in it, and what the next life of a run finds there (docs/checkpoints.md#lives).
// Files of the life that runs lie in RUN itself; those of earlier lives are moved to RUN/lives/N.
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"

namespace planwright {

// The run directory of a launch without --run-dir: runs/NAME-20251120T135057.
std::string DefaultRunDirectory(const Plan& plan);

// RUN/lock, as another process sees it.
struct RunLock {
  bool held = false;   // a launch holds it. On some file systems, locks of other nodes are not seen
  std::string holder;  // "process 4711 on node3": of the launch that holds it, or of one that died; empty: of none
};
RunLock LookAtLock(const std::string& run_dir);
// "process 4711 on node3" of this process.
std::string OwnProcessName();

// Held by a launch until it ends. While one on this file system lives, no other can start in the directory.
class RunDirectory {
 public:
  // Makes the directory, or takes up the run in it if the plan writes checkpoints. Writes plan.json and, in a
  // new run, run.json, and makes logs/ and recorder/. AlreadyExists if it holds a run that cannot be taken up, or that
  // still runs; InvalidArgument if files of no run are in the way; ResourceExhausted if the storage fails; DataLoss if
  // it no longer says which run it is; Unavailable if a file cannot be written otherwise.
  // `trial`: nothing is kept, and nobody goes on with it.
  static absl::StatusOr<RunDirectory> Open(const Plan& plan, const std::string& path, bool trial = false);
  RunDirectory(RunDirectory&& other) noexcept
      : path_(std::move(other.path_)), run_id_(std::move(other.run_id_)), life_(other.life_),
        has_lives_(other.has_lives_), lock_(std::exchange(other.lock_, -1)) {}
  RunDirectory& operator=(RunDirectory&&) = delete;
  ~RunDirectory();

  const std::string& run_id() const { return run_id_; }  // of all its lives
  int life() const { return life_; }                     // from 1
  // True if a newer life has begun (this launch was cut off): then the files in RUN are not ours any more. Unavailable
  // if the folder of lives cannot be read.
  absl::StatusOr<bool> IsReplaced() const;

 private:
  RunDirectory(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::string path_, run_id_;
  int life_ = 1;
  bool has_lives_ = false;  // the plan writes checkpoints
  int lock_ = -1;           // descriptor of RUN/lock
};

}  // namespace planwright
