// How fast a plan trains, from the predicted time of a step (docs/step_time.md#speed).
#pragma once

#include <cstdint>

#include "planner/plan/plan.h"
#include "planner/predict/estimate/step_time.h"

namespace planwright {

struct StepSpeed {
  double tokens_per_second = 0;      // of a rank: the language model's tokens, padding too
  double mfu = 0;                    // docs/flops.md#utilization; 0: the peak of the device is unknown
  bool images_known = true;          // false: samples are counted as full of images, and mfu is at most this
  double hours = 0, rank_hours = 0;  // of the whole budget, with its evaluations and what checkpoints take of it
  double evaluation = 0;             // seconds of one evaluation of all sets; 0: none
  int64_t evaluations = 0;           // of the whole budget
};

// `time`: of the plan, in seconds.
StepSpeed SpeedOf(const Plan& plan, const StepTime& time);

}  // namespace planwright
