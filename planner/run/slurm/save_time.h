// How long before the end of a job its head must know, so that a checkpoint can be written.
#pragma once

#include <string>

#include "planner/plan/plan.h"

namespace planwright {

// A minute, and the time that the newest checkpoint of the run took, from its first file to its manifest. If there is
// none yet: what its bytes would take at 500 MB/s and node. Seconds.
int SecondsToSave(const Plan& plan, const std::string& run_dir);

}  // namespace planwright
