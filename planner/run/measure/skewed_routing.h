// Choices of experts that are made up, for runs that show what unequal rows of experts cost (docs/measure.md). They are
// in the folder that `--replay-routing` takes.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "planner/plan/plan.h"

namespace planwright {

// How many times the mean of its rank's experts the fullest one can have; 1 or less: nothing can be unequal.
double MostSkew(const Plan& plan);

// Writes choices for the first `steps` steps: on every rank the first expert gets `fullest` times the mean of the
// rank's experts, the others alike, and all ranks get the same number of rows. Errors: those of files.
absl::Status WriteSkewedRouting(const Plan& plan, int64_t steps, double fullest, const std::string& folder);

}  // namespace planwright
