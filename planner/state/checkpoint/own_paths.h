// Places that belong to a run: what it writes there itself it also moves, replaces and removes. Nothing else may be
// written there.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace planwright {

// Whether a command may write at `path`, which need not exist: InvalidArgument, with what is in the way, if it is or
// lies in the folder of a checkpoint, or a file or folder that a run writes into its directory. The run directory
// itself, and other names in it, are free.
absl::Status CheckOutsideOfRuns(const std::string& path);

// Before a run begins at `run_dir`, which need not exist: InvalidArgument if no run is there, but a file that it would
// replace or write on, such as a metrics.jsonl of another program. Other files are of no harm.
absl::Status CheckFreeForRun(const std::string& run_dir);

// Before anything of a new run is written at `run_dir`, also an error if the folder is one of something else, as
// weights and shards are: its files would lie among those of the run, and it would count as a run from then on.
// InvalidArgument with the names that were found, or if `run_dir` is a link to nothing. What a person may have put
// there for the run is not in the way: recipes, logs and other files into which its output goes, hidden files, and what
// is empty.
absl::Status CheckNoOtherFolder(const std::string& run_dir);

// As CheckFreeForRun, of the folder of `--probe`.
absl::Status CheckFreeForProbe(const std::string& folder);

}  // namespace planwright
