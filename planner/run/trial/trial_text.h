// What a trial found, for people.
#pragma once

#include <string>

#include "planner/wire/records/trial_verdict.h"

namespace planwright {

// A line for each check: "PASS  memory  ...", below a FAIL what to do, then how long it took until the first step, and
// whether it passed.
std::string TrialText(const TrialVerdict& trial);

}  // namespace planwright
