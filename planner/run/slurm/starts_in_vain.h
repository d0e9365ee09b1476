// How often a job has been started for nothing, or lost a node. Its time may be too short to load, to do a step and to
// save: then it would be put into the queue again and again, and never be done.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace planwright {

// After so many starts in a row without a new checkpoint, or a part of a measurement, a job is not put into the queue
// again.
inline constexpr int kMostStartsInVain = 5;

// Counts a start that ended with `newest_step` (NewestStep), and gives the starts in a row, this one included, that
// ended with no later step than the one before them; 0 after a new checkpoint. Kept in RUN/starts_in_vain. Unavailable
// if that file cannot be written; one that holds something else counts as none.
absl::StatusOr<int> CountStart(const std::string& run_dir, int64_t newest_step);

// Counts a start of a job that lost a node, and gives how often that has happened to this job, this time included. Kept
// in RUN/lost_nodes; another job counts anew. Unavailable if that file cannot be written.
absl::StatusOr<int> CountLostNode(const std::string& run_dir, const std::string& job);

}  // namespace planwright
