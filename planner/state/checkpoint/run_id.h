// The identity of a run: 32 random hex digits. Its first life makes them and writes RUN/run.json; the starts of lives,
// manifests, indices and shards say them again. So a checkpoint of another run is told from those of this one.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace planwright {

std::string NewRunId();

// None: the run has none, as it was begun by a release before runs had one. DataLoss, with the file, if run.json or a
// start.json is damaged, or if they are of two runs; Unavailable if one cannot be read.
absl::StatusOr<std::optional<std::string>> ReadRunId(const std::string& run_dir);

// The same, and writes RUN/run.json if it is not there. If several launches try at once, all get the same.
// ResourceExhausted if it cannot be written.
absl::StatusOr<std::string> TakeRunId(const std::string& run_dir);

// What all checkpoints of one life say alike.
struct LifeIdentity {
  std::string run_id;       // empty: the life began before runs had one
  std::string plan_digest;  // of the plan that it ran
};
// NotFound if the life has written no start, or its plan is gone; DataLoss and Unavailable as above.
absl::StatusOr<LifeIdentity> IdentityOfLife(const std::string& run_dir, int life);

}  // namespace planwright
