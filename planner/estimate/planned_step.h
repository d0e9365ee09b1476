// When the estimate of a step's time (step_time.h) has each instruction of a rank.
#pragma once

#include <vector>

#include "planner/estimate/step_time.h"
#include "planner/link/linked_program.h"

namespace planwright {

// In seconds from the begin of the step.
struct PlannedTime {
  double start = 0;
  double length = 0;  // 0: an instruction without products, which is estimated to take no time
  int action = -1;    // index in RoleTime::actions of the forward or backward that it is in; -1: none
};

// Gives the time of each instruction of the role's step, in the order of the program. Inside its action, whose begin in
// the whole step is known, one instruction begins when the one before it ends. `time`: of the program's role, of a
// StepTime in seconds.
std::vector<PlannedTime> PlanInstructions(const LinkedProgram& program, const RoleTime& time);

}  // namespace planwright
