// The source of data of kind `sources` on documents that are open already.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <vector>

#include "planner/data/samples/documents.h"
#include "planner/data/samples/sample_source.h"
#include "planner/plan/plan.h"

namespace planwright {

// `documents`: of each of plan.data.sources. Errors of Packs::Make, of all sources together; InvalidArgument also if
// more documents are damaged than most_damaged.
absl::StatusOr<std::unique_ptr<SampleSource>> MixSources(const Plan& plan,
                                                         std::vector<std::unique_ptr<Documents>> documents);

}  // namespace planwright
