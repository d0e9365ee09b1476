// Which checkpoint a folder of a command line means: a checkpoint, RUN/checkpoints/step-N.life-N, or a run directory,
// which means its newest one.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/state/checkpoint/run_lives.h"

namespace planwright {

bool IsFolder(const std::string& path);

// All checkpoints of a run, as a life that begins now would see them. Errors: those of ListCheckpoints.
absl::StatusOr<CheckpointList> CheckpointsOf(const std::string& run_dir);

// The checkpoints that a folder means, newest first: itself, or those of a run that have a manifest and count. A
// damaged one, or one of another run, is among them. InvalidArgument if there is none, and what was expected.
absl::StatusOr<std::vector<std::string>> CheckpointFoldersOf(const std::string& folder);

}  // namespace planwright
