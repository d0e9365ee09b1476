// The table that `plan launch --trace` prints.
#pragma once

#include <cstddef>
#include <string>

#include "planner/wire/records/run_profile.h"

namespace planwright {

// For each role: every part with its kinds of instructions, what the device did not do, and the whole step, beside the
// prediction if there is one. Then the rows that are furthest from theirs.
std::string RunProfileText(const RunProfile& profile, size_t width);

}  // namespace planwright
