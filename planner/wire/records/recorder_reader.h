// Reads a rank's recorder pages (planner/wire/records/recorder_format.h). They can be read after the rank's death.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/wire/records/recorder_format.h"

namespace planwright {

// A copy of one rank's pages.
struct RankPosition {
  RecorderState state{};
  int exit_code = 0;
  int64_t failed = 0;            // CLOCK_MONOTONIC when the rank noticed its failure; 0: it did not fail
  uint64_t begun = 0, done = 0;  // numbers of instructions
  std::string host, message;
  std::optional<RecordedInstruction> last;      // launched last: where the rank is
  std::optional<RecordedInstruction> undone;    // the first that is not done: where its device is; nullopt: none
  std::optional<RecordedInstruction> finished;  // done last
  std::vector<RecordedPace> pace;               // of its latest steps, by step
};

// nullopt if the rank died before it wrote its pages, or if the file holds something else.
std::optional<RankPosition> ReadRecorder(const std::string& run_dir, int rank);

}  // namespace planwright
