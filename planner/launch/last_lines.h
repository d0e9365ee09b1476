// The last lines that a rank logged and printed: what it did before it failed.
#pragma once

#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace planwright {

struct LastLines {
  std::string file;                // within the run directory: "logs/rank0003.log"
  std::vector<std::string> lines;  // the newest last; printable (planner/diagnostics/utf8.h), long ones are cut
};

// The last ten lines of the rank's log, and of the last ten that it or its libraries printed those that are not in the
// log as well. A file that is missing, empty or no plain file is left out.
std::vector<LastLines> LastLinesOf(const std::string& run_dir, int rank);

// [{"file": "logs/rank0003.log", "lines": ["...", "..."]}]
nlohmann::ordered_json LastLinesJson(const std::vector<LastLines>& files);
// "  last lines of logs/rank0003.log:\n    ...\n", for each file.
std::string LastLinesText(const std::vector<LastLines>& files);

}  // namespace planwright
