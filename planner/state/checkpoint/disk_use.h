// What the checkpoints of a run take on disk, before there are any.
#pragma once

#include <cstdint>

#include "planner/plan/plan.h"

namespace planwright {

// Bytes of all tensors of a checkpoint. Beside them it has indices, headers, a plan and a manifest.
int64_t BytesOnDisk(const Plan& plan);

// How many checkpoints a run writes if nothing stops it, and how many of them stay when it is done, at most.
struct CheckpointCount {
  int64_t written = 0, kept = 0;
};
CheckpointCount CountCheckpoints(const Plan& plan);

}  // namespace planwright
