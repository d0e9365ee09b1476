// After which steps a run evaluates (docs/training/evaluation.md#when): before the first step, whenever `every_samples`
// divides the samples that were consumed, and after the last step of the budget.
#pragma once

#include <algorithm>
#include <cstdint>

namespace planwright {

struct EvaluationSchedule {
  int64_t steps = 0;           // of the budget
  int64_t global_samples = 0;  // of a step
  int64_t every_samples = 0;   // 0: nothing is evaluated

  // Whether there is an evaluation when so many steps are done.
  bool DueAfter(int64_t done) const {
    return every_samples > 0 && (done == steps || done * global_samples % every_samples == 0);
  }
  // Evaluations that come later than that of so many steps.
  int64_t ComeAfter(int64_t done) const {
    if (every_samples <= 0 || global_samples <= 0 || done >= steps) return 0;
    const int64_t every = std::max<int64_t>(1, every_samples / global_samples);  // steps
    return steps / every - done / every + (steps % every != 0 ? 1 : 0);
  }
};

}  // namespace planwright
