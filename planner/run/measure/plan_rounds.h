// Communications that ranks time after their steps: which ones for a plan, and what became of them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "planner/plan/plan.h"
#include "planner/run/measure/measurements.h"
#include "planner/wire/records/communication_rounds.h"

namespace planwright {

// Every kind that the plan's steps contain and the usual ones beside, over groups of 2, 4, 8 ... ranks of a node, of 2,
// 4, 8 ... nodes with one or all of their ranks, and of the shapes that the steps contain; at the sizes of its kind and
// around them. Empty if the plan has one rank, or its steps communicate nothing.
CommunicationRounds RoundsFor(const Plan& plan);

// Adds what the ranks of a run of these rounds wrote. Error, with the file: times that are not there, or not of these
// rounds.
absl::Status MeasureRounds(const Plan& plan, const std::string& run_dir, const CommunicationRounds& rounds,
                           Measurements& into);

}  // namespace planwright
