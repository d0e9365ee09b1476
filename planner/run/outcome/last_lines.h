// The last lines that a rank logged and printed: what it did before it failed.
#pragma once

#include <string>
#include <vector>

#include "planner/wire/records/outcome.h"

namespace planwright {

// The last ten lines of the rank's log, and of the last ten that it or its libraries printed those that are not in the
// log as well. A file that is missing, empty or no plain file is left out.
std::vector<LastLines> LastLinesOf(const std::string& run_dir, int rank);

// The last ten lines of a plain file, which may begin in FILE.1.
std::vector<std::string> LastLinesOfFile(const std::string& path);

}  // namespace planwright
