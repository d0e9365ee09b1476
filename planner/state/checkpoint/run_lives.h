// The lives of a run, and the checkpoints that count (docs/checkpoints.md#lives). Each launch into a run directory is a
// life. It takes the next number by making RUN/lives/N, which only one launch can do. A life that is replaced while it
// still runs (its node was cut off) finds the folder of a newer life before it publishes, and stops.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/state/checkpoint/format.h"
#include "planner/state/checkpoint/life_start.h"

namespace planwright {

// Makes RUN/lives/N for the smallest N above all that exist, and returns N, from 1. ResourceExhausted if the storage
// fails, Unavailable if it fails otherwise.
absl::StatusOr<int> TakeLife(const std::string& run_dir);
// Whether a newer life exists. Unavailable if the folder cannot be read.
absl::StatusOr<bool> IsReplaced(const std::string& run_dir, int life);
// The largest number of a life; 0: there is none. Unavailable if the folder cannot be read.
absl::StatusOr<int> NewestLife(const std::string& run_dir);
// A checkpoint whose manifest is valid and whose files have the sizes that it says. Their bytes are not read.
struct FoundCheckpoint {
  std::string folder;  // path
  Manifest manifest;
};
// A folder of RUN/checkpoints that is no valid checkpoint, or does not count.
struct UnusableCheckpoint {
  enum class Kind {
    kForeign,       // its name is not that of a checkpoint
    kOffPath,       // valid or not, it does not count
    kNoLife,        // the folder of its life is gone, so nobody can tell whether it counts
    kOtherRun,      // it is on the path by its name, but another run has written it
    kNotPublished,  // it has no manifest: it is being written or removed, or that was cut off
    kDamaged,       // its manifest is not valid, or a file has not the size that it says
  };
  std::string folder;
  std::string why;
  Kind kind = Kind::kForeign;
  int64_t step = -1;  // as its name says; -1: kForeign
  int life = 0;
};
struct CheckpointList {
  // That a next life may load, newest first: by life, then by step. Steps of two lives cannot be compared, as a life
  // may take more samples in a step.
  std::vector<FoundCheckpoint> found;
  std::vector<UnusableCheckpoint> unusable;  // newest first
  // The newest life that has begun, and how: it does not remove the checkpoint that it began from. 0: none has.
  int newest_life = 0;
  LifeStart newest_start;
};
// The checkpoints that life `before` may load: those on the path from the first life to the one before it. A checkpoint
// that a replaced life published after a newer life had begun from an earlier step is not on the path.
// An empty list if there is no such folder; Unavailable if it cannot be read; DataLoss if run.json or a start.json is
// damaged, as then nobody knows the path.
absl::StatusOr<CheckpointList> ListCheckpoints(const std::string& run_dir, int before);

// InvalidArgument, with its folder and what to do, if a checkpoint of another run is newer than `chosen`, or `chosen`
// is null and there is one: a run does not go on beside what may have been meant.
absl::Status CheckNoneOfAnotherRun(const CheckpointList& list, const FoundCheckpoint* chosen);

// What contradicts the place of a checkpoint: its folder's name, and the run directory that it lies in. Empty: nothing,
// or it lies elsewhere.
std::string MisplacedAs(const std::string& folder, const Manifest& manifest);

// The step of the newest checkpoint that the next life could load; 0: there is none, or none can be read.
int64_t NewestStep(const std::string& run_dir);

// It has a folder of checkpoints or of lives, or, if the run keeps no checkpoints, a plan and logs.
bool IsRunDirectory(const std::string& folder);
// Why a run directory without checkpoints has none: a sentence that begins with its name.
std::string WhyNoCheckpoints(const std::string& run_dir);

// The checkpoint that a person means by a folder: itself, if it has a manifest; of a run directory its newest one that
// is usable. `passed`: newer ones of the run that are damaged. InvalidArgument if it is neither, or the run has none,
// or as CheckNoneOfAnotherRun; DataLoss if all that it has are damaged, or its manifest is; Unavailable if it cannot be
// read.
struct NamedCheckpoint {
  FoundCheckpoint checkpoint;
  std::vector<UnusableCheckpoint> passed;
};
absl::StatusOr<NamedCheckpoint> FindCheckpoint(const std::string& folder);

// The checkpoint with the least finite loss of an evaluation set, of several the newest; null: none has one. A set
// whose samples were changed is another set: of `found` (newest first), only those count whose loss is of the same
// samples as that of the newest.
const FoundCheckpoint* BestCheckpoint(const std::vector<FoundCheckpoint>& found, const std::string& set);

// Which of `found` (newest first) may go: all but the newest `keep_last`, those whose step keep_every divides (0:
// none), and the best of the evaluation set keep_best (empty: none). `verified`: the step of the newest checkpoint that
// was read back or loaded whole; it stays. -1: none is known. In the order in which they should go: oldest first.
std::vector<FoundCheckpoint> CheckpointsToRemove(const std::vector<FoundCheckpoint>& found, int64_t keep_last,
                                                 int64_t keep_every, const std::string& keep_best, int64_t verified);
}  // namespace planwright
