// What the copies of a checkpoint do to the step that they run beside (docs/step_time.md#checkpoints).
#pragma once

#include <vector>

#include "planner/predict/estimate/rank_classes.h"
#include "planner/predict/estimate/step_time.h"
#include "planner/predict/simulate/simulate_step.h"

namespace planwright {

struct CheckpointCopies {
  SaveTime save;                // without `longer`
  std::vector<double> seconds;  // by class: until its ranks have copied all; 0: they write nothing

  // Lets AdamW of each class wait for its copies. `simulated`: the step without them. False: no AdamW comes so early
  // that it has to wait, and `times` stay as they are.
  bool MakeWait(const std::vector<const LinkedProgram*>& programs, const SimulatedStep& simulated,
                std::vector<RoleTimes>& times) const;
};

CheckpointCopies CopiesOf(const Plan& plan, const std::vector<RankClass>& classes, const Rates& rates);

}  // namespace planwright
