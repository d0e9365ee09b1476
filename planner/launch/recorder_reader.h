// Reads the page each rank keeps of what it is doing (planner/plan/recorder_format.h), also after its death.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "planner/plan/recorder_format.h"

namespace planwright {

// A copy of a rank's page.
struct RankPosition {
  RecorderState state{};
  int64_t step = 0;
  int microbatch = -1, origin = -1, exit_code = 0;
  uint64_t instructions = 0;
  int64_t monotonic = 0;
  std::string host, path, instruction, message;
};

// nullopt: the rank has not written a page (it died before, or the file is not one).
std::optional<RankPosition> ReadRecorder(const std::string& run_dir, int rank);

}  // namespace planwright
