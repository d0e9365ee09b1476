// What came of each step, for the log. On a GPU a step's numbers are copied behind its last instruction and read a step later, when the device
// has long made them: the host never waits for the step that it has just launched. On a CPU they are there at once.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "executor/optimizer/step_state.h"
#include "executor/telemetry/step_log.h"
#include "planner/plan/plan.h"

namespace planwright::executor {

class StepReports {
 public:
  // `log`: null on ranks that write none. Keeps references.
  StepReports(const Plan& plan, const StepState& step, StepLog* log);
  ~StepReports();

  // The step's first and last instruction. End writes the report of the step before, or of this one if its numbers are there. ExitError if the log
  // cannot be written, or too many steps in a row were skipped.
  void Begin();
  void End();
  // After the last step: nothing is left to read.
  void Finish();

 private:
  class Clock;  // of the device that runs the step
  struct Pending {
    StepRecord record;  // what the host knows
    at::Tensor integers, reals, norms, skipped;  // copies on the host, once the clock says so
  };

  void Write(const Pending& pending);

  const Plan& plan_;
  const StepState& step_;
  StepLog* const log_;
  at::Tensor integers_, reals_;  // whole sums
  int64_t loss_tokens_ = -1, routing_ = -1, loss_ = -1, aux_ = -1;  // places in them
  int64_t expert_layers_ = 0;
  int skipped_in_a_row_ = 0;
  std::optional<Pending> pending_;
  std::unique_ptr<Clock> clock_;
};

}  // namespace planwright::executor
