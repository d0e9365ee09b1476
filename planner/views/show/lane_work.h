// How evenly the images of a run are dealt to the lanes of its encoders (docs/training/data.md#balance).
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan/lane_fullness.h"
#include "planner/plan/plan.h"

namespace planwright {

struct LaneWork {
  int64_t steps = 0;    // of the run, from its first one
  int64_t patches = 0;  // of all their samples, for the first encoder; 0: no images
  struct OfModule {
    std::string module;
    Fullness in_order, balanced;  // with `balance: none` and with `balance: images`
  };
  std::vector<OfModule> modules;  // encoders, by DataPlan::encoders
};

// Of the first 50 steps, or fewer where they have more than 50,000 samples; at least one. Opens the data as a rank
// does. Errors are those of OpenSampleSource: files or an index are not there.
absl::StatusOr<LaneWork> MeasureLaneWork(const Plan& plan);

}  // namespace planwright
