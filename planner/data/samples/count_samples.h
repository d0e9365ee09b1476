// What the samples of a run bring to its encoders, counted once from the index and kept beside it: for plans, which are
// made without opening the data (docs/training/data.md#counted).
#pragma once

#include <absl/status/status.h>

#include <optional>
#include <string>

#include "planner/data/samples/sample_source.h"
#include "planner/plan/plan.h"

namespace planwright {

// The file in the folder of the index. Its name has a digest of all that decides which samples there are, but for the
// content of shards. `sequence`: tokens of a sample.
std::string CountedPath(const DataPlan& data, int64_t sequence);

// Counts all samples of an epoch of each source, and the patches of the first 4,096 samples of a run, and writes that
// file unless it says the same already. `source`: of this data; no shard is read. Without encoders there is nothing to
// count, and no file. Errors of files.
absl::Status KeepCounted(const DataPlan& data, int64_t sequence, const SampleSource& source);

// What that file says. nullopt: there is none, or it is damaged.
std::optional<CountedSamples> CountedAtHand(const DataPlan& data, int64_t sequence);

}  // namespace planwright
