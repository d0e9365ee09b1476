// How long ranks may go on after they are asked to stop, until they begin to save (docs/checkpoints.md#stopping).
#pragma once

#include <cstddef>

#include "planner/plan/plan.h"

namespace planwright {

// How many steps a GPU's rank may have launched before it reads the sums of one. Bounds the pinned memory of unread
// records. The launch queue of a GPU holds less than two steps, so a host that is this far ahead is rare; then it
// waits.
inline constexpr size_t kUnreadStepsAllowed = 4;

// Steps between a request and the stop, at most. A request that comes just after the begin of a step is a part of the
// sums of the next one, and all stop behind that: two steps. The host of a GPU may be kUnreadStepsAllowed steps ahead
// of its device, and all stop so many steps behind the one that has the request.
constexpr size_t StepsUntilStop(bool on_gpus) { return on_gpus ? 2 * kUnreadStepsAllowed + 2 : 2; }

// Seconds of a step, as predicted (LaunchPlan::predicted_step); 0: the device is unknown. A round of an evaluation
// takes less: its forwards are those of one microbatch. Of a plan of an earlier version, which does not say it, goes
// through all programs.
double PredictedStep(const Plan& plan);

}  // namespace planwright
