// From which checkpoint a run goes on, agreed by all ranks. Rank 0 chooses the newest one that counts; every rank loads
// and proves what it needs of it; if a byte of it is damaged, all fall back to the next older one together
// (docs/checkpoints.md#loading).
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "executor/communication/rendezvous.h"
#include "planner/plan/plan.h"
#include "planner/state/checkpoint/checkpoint_log.h"
#include "planner/state/checkpoint/run_lives.h"

namespace c10d {
class Store;
}

namespace planwright::executor {

// Whether this life may still change the files of the run. Aborted if a newer one has begun; ResourceExhausted if the
// run directory cannot be read.
absl::Status CheckNoNewerLife(const std::string& run_dir, int life);

class ResumePoint {
 public:
  // Keeps references.
  ResumePoint(const Plan& plan, const Environment& environment, std::string run_dir, int life, c10d::Store& store)
      : plan_(plan), environment_(environment), run_dir_(std::move(run_dir)), life_(life), store_(store) {}

  // Takes the next candidate: the newest at first, then the next older. Returns its folder; empty: the run has no
  // checkpoint yet and begins fresh. All ranks get the same error. DataLoss if there are only damaged ones, or if those
  // that the run had are gone; InvalidArgument if the samples of the checkpoint are no whole number of steps of this
  // plan, or if folders are there that only a person can judge, such as a checkpoint of another run; Aborted if a newer
  // life has begun; ResourceExhausted if the run directory cannot be read or written; Unavailable if a rank cannot be
  // reached.
  absl::StatusOr<std::string> Next();

  // Every rank says how its loading went (empty: well), and gets what went wrong on any rank (empty: all is well).
  // Unavailable if a rank cannot be reached.
  absl::StatusOr<std::string> Agree(const std::string& problem);

  // The identity of the run (run_id.h), which rank 0 has read or made. After the first candidate.
  const std::string& run_id() const { return run_id_; }

  // Steps of the candidate.
  int64_t first_step() const { return first_step_; }  // from 0
  int64_t checkpoint_step() const { return step_; }   // of the run that wrote it; the same unless a step's size changed

 private:
  struct Choice {
    std::string folder;
    int64_t first_step = 0, step = -1;
    std::string run_id;
  };
  absl::StatusOr<Choice> Choose();
  absl::StatusOr<Choice> BeginFresh(const CheckpointList& list, const std::string& run_id);
  absl::Status AllGone(int life, const CheckpointLog& log) const;
  absl::Status WriteStart(const Choice& choice, int from_life);
  std::string Exchange(const std::string& what, const std::string& own);

  const Plan& plan_;
  const Environment& environment_;
  const std::string run_dir_;
  const int life_;
  c10d::Store& store_;
  int attempt_ = 0;
  int64_t first_step_ = 0, step_ = -1;
  std::string run_id_;
  std::vector<std::string> refused_;  // of rank 0: folders that were taken or found damaged before
};

}  // namespace planwright::executor
