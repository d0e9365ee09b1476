// How many samples the sources of a run have, what these bring to its encoders, and with packed documents how long
// their documents are, counted once from the index and kept beside it: for plans, which are made without opening the
// data (docs/training/data.md#counted).
#pragma once

#include <absl/status/status.h>

#include <optional>
#include <string>
#include <vector>

#include "planner/data/samples/sample_source.h"
#include "planner/plan/plan.h"

namespace planwright {

// The file in the folder of the index. Its name has a digest of all that decides which samples there are, but for the
// content of shards. `sequence`: tokens of a sample.
std::string CountedPath(const DataPlan& data, int64_t sequence);

// Counts all samples of an epoch of each source, and the patches and documents of the first 4,096 samples of a run, and
// writes that file unless it says the same already. `source`: of this data; no shard is read. Errors of files.
absl::Status KeepCounted(const DataPlan& data, int64_t sequence, const SampleSource& source);

// What that file says of images and documents; of data without either only the digest. nullopt: there is none, or it is
// damaged.
std::optional<CountedSamples> CountedAtHand(const DataPlan& data, int64_t sequence);

// Samples of an epoch of each source, by that file. nullopt: as above.
std::optional<std::vector<int64_t>> EpochAtHand(const DataPlan& data, int64_t sequence);

// Of sources with so many samples in an epoch, at least 1: how many samples of the mixture come before one that is read
// a second time. This is what `samples: all` of an evaluation set means.
int64_t SamplesOnce(const DataPlan& data, const std::vector<int64_t>& samples);

// How many of the first so many samples of the mixture are of each source. None where there are no sources.
std::vector<int64_t> SamplesOfSources(const DataPlan& data, int64_t samples);

}  // namespace planwright
