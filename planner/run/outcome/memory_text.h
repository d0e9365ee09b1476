// The table of memory that `plan launch` prints at the end of a run on GPUs.
#pragma once

#include <cstddef>
#include <string>

#include "planner/wire/records/run_memory.h"

namespace planwright {

// For each role, what was planned and what was measured. Empty if nothing was measured.
std::string RunMemoryText(const RunMemory& memory, size_t width);

}  // namespace planwright
