// What the watchdog of a rank looks at, and how it ends the rank.
#pragma once

#include <c10/core/Device.h>

#include "executor/rank/assignment.h"
#include "executor/rank/watchdog.h"

namespace planwright::executor {

// Keeps a reference. A hang, or a failure that a backend noticed, is reported in the same form as the walker's own
// errors.
Watchdog::Duties WatchdogDuties(const Assignment& assignment, at::Device device);

}  // namespace planwright::executor
