// What programs are written from: finished parts of the plan.
#pragma once

#include <vector>

#include "planner/compile/schedule/derive/block_inputs.h"

namespace planwright {

// Modules with their buckets.
struct ProgramInputs : BlockInputs {
  const std::vector<StageSchedule>& schedule;  // of every stage, with all backwards
  const EvaluationPlan& evaluation;
  int world_size = 0;
  bool loads_weights = false;  // first weights come from a file
  bool checkpoints = false;    // the run writes checkpoints
};

}  // namespace planwright
