// The lives of a run, and the checkpoints that count (docs/checkpoints.md#lives). Each launch into a run directory is a
// life. It takes the next number by making RUN/lives/N, which only one launch can do. A life that is replaced while it
// still runs (its node was cut off) finds the folder of a newer life before it publishes, and stops.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/checkpoint/format.h"

namespace planwright {

// How a life began: RUN/lives/N/start.json.
struct LifeStart {
  int from_life = 0;      // the life whose checkpoint it loaded; 0: it began fresh
  int64_t from_step = 0;  // the step of that checkpoint
};

// Makes RUN/lives/N for the smallest N above all that exist, and returns N, from 1. Unavailable if that fails.
absl::StatusOr<int> TakeLife(const std::string& run_dir);
// Whether a newer life exists. Unavailable if the folder cannot be read.
absl::StatusOr<bool> IsReplaced(const std::string& run_dir, int life);
absl::Status WriteLifeStart(const std::string& run_dir, int life, const LifeStart& start);

// A checkpoint whose manifest is valid and whose files have the sizes that it says. Their bytes are not read.
struct FoundCheckpoint {
  std::string folder;  // path
  Manifest manifest;
};
// A folder of RUN/checkpoints that is no valid checkpoint, or does not count.
struct UnusableCheckpoint {
  std::string folder;
  std::string why;
};
struct CheckpointList {
  std::vector<FoundCheckpoint> found;  // that a next life may load, newest first
  std::vector<UnusableCheckpoint> unusable;
};
// The checkpoints that life `before` may load: those on the path from the first life to the one before it. A checkpoint
// that a replaced life published after a newer life had begun from an earlier step is not on the path.
// An empty list if there is no such folder; Unavailable if it cannot be read.
absl::StatusOr<CheckpointList> ListCheckpoints(const std::string& run_dir, int before);

// Which of `found` (newest first) may go: all but the newest `keep_last` and those whose step keep_every divides (0:
// none). `verified`: the newest checkpoint that was read back or loaded whole; it stays. -1: none is known.
std::vector<FoundCheckpoint> CheckpointsToRemove(const std::vector<FoundCheckpoint>& found, int64_t keep_last,
                                                 int64_t keep_every, int64_t verified);
// The manifest first, so that a half-removed checkpoint is none.
absl::Status RemoveCheckpoint(const std::string& folder);

}  // namespace planwright
