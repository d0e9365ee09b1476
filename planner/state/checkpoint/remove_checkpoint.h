// What retention takes away: the files of a checkpoint, and nothing else. A person may have put files of their own into
// its folder, and a folder in its place.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace planwright {

// Whether what was a checkpoint is none any more, or never became one: it has no manifest. A run removes checkpoints,
// as it keeps only some (checkpoint.keep_last).
bool IsRemoved(const std::string& folder);

// Why such a folder is no checkpoint. `ended`: its life has been replaced by a newer one.
std::string WhyNotPublished(const std::string& folder, bool ended);

// The manifest first, so that a half-removed checkpoint is none; then all other files that a run writes there, and the
// folder if it is empty then. Returns the names of what stays, as no run has written it; the folder itself if it is a
// symbolic link, of which nothing is removed. Nothing if there is no such folder. InvalidArgument if the folder's name
// is not that of a checkpoint; Unavailable if it cannot be removed.
absl::StatusOr<std::vector<std::string>> RemoveCheckpoint(const std::string& folder);

// Folders of RUN/checkpoints in which lives before `life` began to write, and never published: those lives were killed.
// Also those of which a removal was cut off. They have files that a run has written. Unavailable if the folder cannot
// be read.
absl::StatusOr<std::vector<std::string>> LeftByEndedLives(const std::string& run_dir, int life);

}  // namespace planwright
