// How long the ranks of a run may go on after they are asked to stop: as predicted, and as soon as the run has done
// steps as it has measured itself.
#pragma once

#include <string>

#include "planner/plan/plan.h"
#include "planner/run/launch/run_options.h"

namespace planwright {

// The longest step and the longest stretch of an evaluation in which no rank looks, of the last records of a run, in
// seconds; 0: there are none.
struct MeasuredStretches {
  double step = 0, evaluation = 0;
};
MeasuredStretches ReadStretches(const std::string& run_dir);

// Seconds until all ranks have stopped and begin to save; 0: nobody knows.
double SecondsUntilStop(const Plan& plan, const RunOptions& options);

}  // namespace planwright
