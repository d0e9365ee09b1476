// The record of each step (docs/training/step.md#metrics), read from the device without waiting for it. On a GPU the
// numbers of a step are copied to the host after its last instruction; they are read at the end of the first later step
// that finds them there. On a CPU they are there at once.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "executor/optimizer/step_state.h"
#include "executor/program/stop_rules.h"
#include "executor/telemetry/step_log.h"
#include "executor/telemetry/step_pace.h"
#include "executor/tensorboard/event_file.h"
#include "planner/plan/plan.h"
#include "planner/predict/estimate/until_stop.h"

namespace planwright::executor {

class StepReports {
 public:
  using DataWait = std::function<double(int64_t step)>;

  // `log`: null on ranks that write no log, and `events` on those that write none for TensorBoard. `data_wait`:
  // Handlers::data_wait. `rules` get the numbers of every step. Keeps references.
  StepReports(const Plan& plan, const StepState& step, StepLog* log, EventFile* events, DataWait data_wait,
              StopRules& rules);
  ~StepReports();

  // Called by the first and by the last instruction of a step. End also writes the records of all earlier steps whose
  // numbers have come, and then gives them to the rules. ExitError if a file cannot be written (kExitStorage), or that
  // of the rules.
  void Begin();
  void End();
  // An evaluation took so many seconds: the time that is left counts those to come.
  void Evaluated(double seconds) { pace_.Evaluated(seconds); }
  // After the last step: waits for the numbers that are still on their way, and writes them.
  void Finish();

 private:
  class Clock;
  struct Pending {
    StepRecord record;  // the part that the host knows already
    // Host copies, valid once the clock is done. The last two are by source; undefined without such sums.
    at::Tensor integers, reals, norms, skipped, source_losses, source_tokens;
    std::unique_ptr<Clock> clock;
  };

  // Where a bridge's sums are in $reals and $integers.
  struct BridgeSums {
    const Bridge* bridge = nullptr;
    int64_t squares = -1, elements = -1;
  };

  void WriteOldest();
  void Write(const Pending& pending);
  StepRecord RecordOf(const Pending& pending);
  void WriteFiles(const StepRecord& record);

  const Plan& plan_;
  const StepState& step_;
  StepLog* const log_;
  EventFile* const events_;
  const DataWait data_wait_;
  StopRules& rules_;
  at::Tensor integers_, reals_;                                     // "$integers" and "$reals", whole
  at::Tensor source_losses_, source_tokens_;                        // the same; undefined if the plan has none
  int64_t loss_tokens_ = -1, routing_ = -1, loss_ = -1, aux_ = -1;  // indices of parts in them
  std::vector<BridgeSums> bridges_;
  int64_t expert_layers_ = 0;
  StepPace pace_;
  int64_t stop_ = -1;             // index of $integers.stop_requests; -1: no run with checkpoints
  std::deque<Pending> pending_;   // steps that have been launched but not written, oldest first
  std::unique_ptr<Clock> clock_;  // of the current step
};

}  // namespace planwright::executor
