// Reads the pages each rank keeps of what it is doing (planner/run_files/recorder_format.h), also after its death.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "planner/run_files/recorder_format.h"

namespace planwright {

// A copy of what a rank's pages say.
struct RankPosition {
  RecorderState state{};
  int exit_code = 0;
  int64_t failed = 0;            // CLOCK_MONOTONIC when the rank noticed that it failed; 0: it did not
  uint64_t begun = 0, done = 0;  // numbers of instructions
  std::string host, message;
  std::optional<RecordedInstruction> last;  // begun last: where the rank is
  // the first that is not done: where its device is; nullopt: all are done
  std::optional<RecordedInstruction> undone;
  std::optional<RecordedInstruction> finished;  // done last
};

// nullopt: the rank has not written its pages (it died before, or the file is not one).
std::optional<RankPosition> ReadRecorder(const std::string& run_dir, int rank);

}  // namespace planwright
