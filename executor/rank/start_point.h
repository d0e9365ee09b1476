// Where a run begins: with one of its own checkpoints, with the weights that `initialize` names, or with drawn weights.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>

#include "executor/base/fail_point.h"
#include "executor/program/walk.h"
#include "executor/rank/assignment.h"
#include "executor/rank/initial_state.h"
#include "executor/rank/run_checkpoints.h"
#include "executor/telemetry/step_log.h"

namespace planwright::executor {

class StartPoint {
 public:
  // All ranks get the same answer. `log`: of rank 0, null on the others; the records of steps that will be done again
  // leave it, as no life before kept those steps. Keeps references. Errors: those of RunCheckpoints, InitialState and
  // StepLog; InvalidArgument if --trace names steps before those of a run that begins.
  static absl::StatusOr<std::unique_ptr<StartPoint>> Choose(const Assignment& assignment, c10d::Store& store,
                                                            StepLog* log, const CheckpointWriter::Hooks& hooks);

  // The steps of this life, up to `last` (from 0). What earlier lives evaluated is known after ChooseAgain, on rank 0.
  StepSpan Steps(int64_t last) const { return {first_step_, last, resumes_, evaluated_, evaluation_seconds_}; }
  RunCheckpoints* checkpoints() { return checkpoints_.get(); }  // null: the run keeps none
  InitialState* initial() { return initial_.get(); }            // null: no weights but those of a checkpoint or drawn

  // After each run of the list `resume`: true if the checkpoint was damaged, and the list must run again with an older
  // one. All ranks get the same answer. Errors: as Choose.
  absl::StatusOr<bool> ChooseAgain();
  // After setup: frees what was needed to load weights.
  void Loaded() { initial_.reset(); }

 private:
  StartPoint(const Assignment& assignment, c10d::Store& store, StepLog* log)
      : assignment_(assignment), store_(store), log_(log) {}
  absl::Status ChooseCheckpoint();
  absl::Status DropLaterSteps();
  absl::Status AgreeOnEvaluated();

  const Assignment& assignment_;
  c10d::Store& store_;
  StepLog* const log_;
  std::unique_ptr<RunCheckpoints> checkpoints_;
  std::unique_ptr<InitialState> initial_;
  bool resumes_ = false;
  bool evaluated_ = false;
  double evaluation_seconds_ = 0;
  int64_t first_step_ = 0;
};

}  // namespace planwright::executor
