// From which sample on two data sections with sources give other samples (docs/training/data.md#changing-sources).
#pragma once

#include <cstdint>
#include <optional>

#include "planner/plan/plan.h"

namespace planwright {

// Of two sections that differ in nothing but their sources: the first sample, not before `first`, that is of another
// source, or another one of its source. None: no sample differs. Sources are the same if their names and the names of
// their files are; that a file has changed shows in the digest of the index.
std::optional<int64_t> FirstOtherSample(const DataPlan& from, const DataPlan& to, int64_t first);

}  // namespace planwright
