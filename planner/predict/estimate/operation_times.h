// What each operation takes in each part of the model or the step, as a trace counts it: the rows of `plan launch
// --trace` as they are predicted (docs/profiling.md#the-table).
#pragma once

#include <vector>

#include "planner/predict/estimate/instruction_times.h"
#include "planner/predict/estimate/step_time.h"

namespace planwright {

// `entries`: of the program's step (RoleTime::entries). In the order in which they first run.
std::vector<OperationTime> OperationTimesOf(const LinkedProgram& program, const std::vector<PlannedTime>& entries,
                                            InstructionTimes& times);

}  // namespace planwright
