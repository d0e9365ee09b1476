// What evaluations give (docs/training/evaluation.md): the sums of a round of all sets become a record, which every
// rank has and rank 0 writes.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "executor/optimizer/step_state.h"
#include "executor/telemetry/step_log.h"
#include "executor/tensorboard/event_file.h"
#include "planner/plan/plan.h"
#include "planner/state/checkpoint/format.h"

namespace planwright::executor {

class EvaluationReports {
 public:
  // `trains`: whether the run has steps to do. `log`, `events`: null on ranks that write none. Keeps references.
  EvaluationReports(const Plan& plan, bool trains, const StepState& step, StepLog* log, EventFile* events)
      : plan_(plan), trains_(trains), step_(step), log_(log), events_(events) {}

  // An evaluation begins when so many steps are done.
  void Begin(int64_t steps_done);
  // Of this evaluation: EvaluationRecord::unheard.
  void SetUnheard(double seconds) { unheard_ = seconds; }
  // Carries out log_evaluation: waits for the sums over all ranks, makes the record, and sets the sums to zero.
  // ExitError (kExitStorage) if a file cannot be written.
  void End();

  // Of the last evaluation: the loss of each set that has tokens to learn, and how long it took.
  const std::map<std::string, SetLoss>& losses() const { return losses_; }
  double seconds() const { return seconds_; }

 private:
  void Write(const EvaluationRecord& record);

  const Plan& plan_;
  const bool trains_;
  const StepState& step_;
  StepLog* const log_;
  EventFile* const events_;
  int64_t steps_done_ = 0;
  double began_ = 0, seconds_ = 0, unheard_ = 0;
  std::map<std::string, SetLoss> losses_;
};

}  // namespace planwright::executor
