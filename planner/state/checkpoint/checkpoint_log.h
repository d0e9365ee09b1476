// RUN/lives/N/checkpoints.jsonl: what each checkpoint of a life cost, one JSON object a line. Rank 0 writes a line when
// the checkpoint is published; `plan report` reads them. The line stays when the checkpoint is removed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace planwright {

struct CheckpointCost {
  int64_t step = 0, bytes = 0;  // bytes of all shards
  double copied = 0;            // seconds of the copy to host memory, beside the training
  double written = 0;           // seconds from the begin of the copy until it was published
  double waited = 0;            // seconds that training waited for the checkpoint before this one
  double published = 0;         // seconds since 1970
};

// Appends a line. ResourceExhausted, with the path, if it cannot be written.
absl::Status LogCheckpoint(const std::string& run_dir, int life, const CheckpointCost& cost);

struct CheckpointLog {
  std::vector<CheckpointCost> checkpoints;  // in the order of the file
  int64_t unreadable = 0;                   // lines that are no such object
};
// The log of a life; an empty one if it has published nothing. A last line that is being written counts as none.
CheckpointLog ReadCheckpointLog(const std::string& run_dir, int life);

}  // namespace planwright
