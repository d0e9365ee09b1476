// The rules by which a run ends before its last step: too many steps in a row are skipped, the rows of a bridge grow
// beyond their limit, the loss diverges, or a rank is asked to stop. They look at the sums over all ranks, so all ranks
// decide alike.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "executor/program/divergence_rule.h"
#include "executor/telemetry/step_log.h"
#include "planner/plan/plan.h"
#include "planner/state/checkpoint/format.h"

namespace planwright::executor {

inline constexpr int kSkippedStepsAllowed = 10;  // in a row

class StopRules {
 public:
  // Keeps a reference. `lag`: how many steps a rank may have launched before it reads the numbers of one, at most.
  StopRules(const Plan& plan, int64_t lag)
      : plan_(plan), lag_(lag), divergence_(plan.divergence.window, plan.divergence.factor) {}

  // Takes the numbers of the next step, in the order of steps. `stop_requests`: how many ranks were asked to stop when
  // the step began. ExitError (kExitNumerics) if this is the 10th skipped step in a row, or if the mean square of a
  // bridge's rows is beyond its limit; a mean that is not a number is beyond every limit. ExitError (kExitDiverged) if
  // the loss is too far above those before.
  void Take(const StepRecord& record, int64_t stop_requests);

  // Goes on from what a checkpoint notes of the steps before it: the losses that `divergence` looks at, and how many
  // steps were skipped in a row. And what the next checkpoint notes.
  void Resume(const ManifestNotes& notes);
  void Note(ManifestNotes& notes) const;

  // Whether all ranks stop after step `step` (from 0), which this rank has just launched, since one of them was asked
  // to. All ranks give the same answer for the same step, although a rank may read the request some steps later than
  // another: all stop when every rank must have read it.
  bool StopAfter(int64_t step) const { return stop_after_ && step >= *stop_after_; }

 private:
  void CheckBridges(const StepRecord& record) const;
  void CheckSkipped(const StepRecord& record) const;
  void CheckDivergence(const StepRecord& record);

  const Plan& plan_;
  const int64_t lag_;
  DivergenceRule divergence_;
  int64_t skipped_in_a_row_ = 0;
  std::optional<int64_t> stop_after_;  // from 0
};

}  // namespace planwright::executor
