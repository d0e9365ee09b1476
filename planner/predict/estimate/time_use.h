// What a rank does with the time of a step: work, communication that nothing hides, and waiting.
#pragma once

#include <vector>

#include "planner/plan/link/linked_program.h"
#include "planner/predict/simulate/simulate_step.h"

namespace planwright {

struct TimeUse {
  double busy = 0, communication = 0, waiting = 0, launching = 0;  // they add up to the step
  // By entry of the step: of work, its time; of a communication, as long as nothing computes or communicates earlier.
  std::vector<double> shown;
  std::vector<double> waited_for;  // by role: of `waiting`
};

// Of one role of a simulated step. Where the role that it waits for waits itself, that for which this one waits counts.
TimeUse TimeUseOf(const LinkedProgram& program, const SimulatedStep& step, size_t role);

}  // namespace planwright
