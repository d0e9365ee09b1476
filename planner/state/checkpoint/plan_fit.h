// Whether a run of a plan can go on from a checkpoint, and what its ranks then load (docs/checkpoints.md#loading).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/state/checkpoint/shard_reader.h"

namespace planwright {

// How the precision and the tensors of the checkpoint differ from those of the plan: every tensor that the plan needs
// must be there, in the same shape and type, and no other. A line for each difference; none: it fits.
std::vector<std::string> TensorMisfits(const Plan& plan, const CheckpointReader& checkpoint);

// How many steps of the plan are done at this checkpoint. InvalidArgument if its samples are no whole number of them.
absl::StatusOr<int64_t> StepsDone(const Plan& plan, const std::string& folder, const CheckpointCounters& counters);

// Bytes of the pieces that a rank of the role needs (PiecesToLoad): the same for all of them, except that the padding
// of a bucket, which the last ranks have in their shards, and that of a storage (Parameter::padded) are counted too.
int64_t BytesToLoad(const Plan& plan, const Role& role);

}  // namespace planwright
