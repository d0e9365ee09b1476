// The files that a trial asks each node to read.
#pragma once

#include "planner/plan/plan.h"
#include "planner/wire/records/rank_trial.h"

namespace planwright {

// Files of samples, of the evaluation sets too, and of the weights to begin with, by their absolute paths. Of more than
// a thousand, as many in equal distances: a trial shall take seconds. What cannot be listed here is left to the ranks.
TrialFiles FilesOfTrial(const Plan& plan);

}  // namespace planwright
