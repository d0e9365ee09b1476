// Where a run begins: with one of its own checkpoints, with the weights that `initialize` names, or with drawn weights.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>

#include "executor/base/fail_point.h"
#include "executor/rank/assignment.h"
#include "executor/rank/initial_state.h"
#include "executor/rank/run_checkpoints.h"
#include "executor/telemetry/step_log.h"

namespace planwright::executor {

class Beginning {
 public:
  // All ranks get the same answer. `log`: of rank 0, null on the others; the records of steps that will be done again
  // leave it, as no life before kept those steps. Keeps references. Errors: those of RunCheckpoints, InitialState and
  // StepLog; InvalidArgument if --trace names steps that are done.
  static absl::StatusOr<std::unique_ptr<Beginning>> Choose(const Assignment& assignment, c10d::Store& store,
                                                           StepLog* log, const FailPointHook& fail_point);

  bool resumes() const { return resumes_; }           // from a checkpoint of this run, by the list `resume`
  int64_t first_step() const { return first_step_; }  // from 0
  // Whether an earlier life has done the evaluation that is due before the first step. After ChooseAgain.
  bool evaluated() const { return evaluated_; }
  // What the last evaluation of earlier lives took; 0: there was none, or another rank than 0. After ChooseAgain.
  double evaluation_seconds() const { return evaluation_seconds_; }
  RunCheckpoints* checkpoints() { return checkpoints_.get(); }  // null: the run keeps none
  InitialState* initial() { return initial_.get(); }            // null: no weights but those of a checkpoint or drawn

  // After each run of the list `resume`: true if the checkpoint was damaged, and the list must run again with an older
  // one. All ranks get the same answer. Errors: as Choose.
  absl::StatusOr<bool> ChooseAgain();
  // After setup: frees what was needed to load weights.
  void Loaded() { initial_.reset(); }

 private:
  Beginning(const Assignment& assignment, c10d::Store& store, StepLog* log)
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
