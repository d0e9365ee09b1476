// The kinds of source, one file each.
#pragma once

#include "executor/data/sample_source.h"

namespace planwright::executor {

// mock: images of drawn classes and text that follows from them; needs no file.
absl::StatusOr<std::unique_ptr<SampleSource>> OpenMock(const Plan& plan);

// recorded: the rows of a safetensors batch, over and over.
absl::StatusOr<std::unique_ptr<SampleSource>> OpenRecorded(const Plan& plan);

// webdataset: documents in tar shards, packed.
absl::StatusOr<std::unique_ptr<SampleSource>> OpenWebdataset(const Plan& plan);

}  // namespace planwright::executor
