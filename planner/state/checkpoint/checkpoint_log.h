// RUN/lives/N/checkpoints.jsonl: what each checkpoint of a life cost, one JSON object a line. Rank 0 writes a line when
// the checkpoint is published; `plan report` reads them. The line stays when the checkpoint is removed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace planwright {

struct CheckpointCost {
  int64_t step = 0, bytes = 0;  // bytes of all shards
  double copied = 0;            // seconds of the copy to host memory, beside the training
  double written = 0;           // seconds from the begin of the copy until it was published
  double waited = 0;            // seconds that training waited for the checkpoint before this one
  double published = 0;         // seconds since 1970
  std::string run_id = {};      // of the run that published it; empty: of a release before lines had it
};

// Appends a line. ResourceExhausted, with the path, if it cannot be written.
absl::Status LogCheckpoint(const std::string& run_dir, int life, const CheckpointCost& cost);

struct CheckpointLog {
  std::vector<CheckpointCost> checkpoints;  // in the order of the file
  int64_t unreadable = 0;                   // lines that are no such object
  int64_t of_another = 0;                   // lines of another run than `run_id`
};
// The log of a life; an empty one if it has published nothing. A last line that is being written counts as none.
// `run_id`: of this run; empty: of any. It is read line by line, kMostLoggedCheckpoints of them. Unavailable if it
// cannot be read.
inline constexpr size_t kMostLoggedCheckpoints = 1 << 20;
absl::StatusOr<CheckpointLog> ReadCheckpointLog(const std::string& run_dir, int life, const std::string& run_id);

}  // namespace planwright
