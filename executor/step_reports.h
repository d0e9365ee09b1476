// What came of each step, for the log. On a GPU a step's numbers are copied behind its last instruction and read at the
// end of a later step, the first that finds them there: the host does not wait for what it has launched. On a CPU they
// are there at once.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <memory>
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

  // The step's first and last instruction. End writes the reports of all steps whose numbers are there. ExitError if
  // the log cannot be written, or too many steps in a row were skipped.
  void Begin();
  void End();
  // After the last step: nothing is left to read.
  void Finish();

 private:
  class Clock;
  struct Pending {
    StepRecord record;                           // what the host knows
    at::Tensor integers, reals, norms, skipped;  // copies on the host, once the clock is done
    std::unique_ptr<Clock> clock;
  };

  void WriteFirst();
  void Write(const Pending& pending);

  const Plan& plan_;
  const StepState& step_;
  StepLog* const log_;
  at::Tensor integers_, reals_;                                     // whole sums
  int64_t loss_tokens_ = -1, routing_ = -1, loss_ = -1, aux_ = -1;  // places in them
  int64_t expert_layers_ = 0;
  int skipped_in_a_row_ = 0;
  std::deque<Pending> pending_;   // steps that have ended and are not written
  std::unique_ptr<Clock> clock_;  // of the step that runs
};

}  // namespace planwright::executor
