// How fast steps are (docs/training/step.md#pace): tokens and FLOPs per second, the share of the device's peak, and
// when the run will be done.
#pragma once

#include <cstdint>
#include <deque>
#include <span>

#include "planner/plan/evaluation_schedule.h"
#include "planner/plan/plan.h"
#include "planner/predict/estimate/model_flops.h"
#include "planner/wire/records/step_record.h"

namespace planwright::executor {

class StepPace {
 public:
  // `on_gpus`: whether this run is on the GPUs that the plan names.
  StepPace(const Plan& plan, bool on_gpus);

  // After each step that is done, in order. `step`: from 1. `elements`: see StepFlops.
  StepSpeed Of(int64_t step, double seconds, std::span<const int64_t> elements);
  // After each evaluation, and first for the last one of earlier lives.
  void Evaluated(double seconds) { ++evaluations_, evaluation_seconds_ += seconds; }

 private:
  const StepFlops flops_;
  const double ranks_, tokens_;  // tokens_: of a step
  const double peak_;            // FLOP/s of one device; 0: unknown
  const int64_t steps_;
  const EvaluationSchedule evaluation_;
  int64_t evaluations_ = 0;  // that Evaluated was told of
  double evaluation_seconds_ = 0;
  int64_t seen_ = 0;           // steps of this process
  std::deque<double> recent_;  // seconds of the last steps. The first one, which warms up, leaves as the second comes
};

}  // namespace planwright::executor
