#include "planner/state/checkpoint/disk_use.h"

#include <algorithm>

#include "planner/plan/shard_map.h"
#include "planner/state/checkpoint/pieces.h"

namespace planwright {

int64_t BytesOnDisk(const Plan& plan) {
  int64_t bytes = 0;
  for (const CheckpointTensor& tensor : CheckpointTensors(plan))
    bytes += ElementsOf(tensor.shape) * DTypeBytes(tensor.dtype);
  return bytes;
}

CheckpointCount CountCheckpoints(const Plan& plan) {
  const CheckpointPlan& checkpoint = plan.checkpoint;
  if (checkpoint.every_steps == 0) return {};
  const int64_t steps = plan.budget.steps;
  // The last step has one, too.
  const auto every = [&](int64_t count) { return (steps + count - 1) / count; };
  CheckpointCount found{.written = every(checkpoint.every_steps), .kept = 0};
  found.kept = found.written;
  if (checkpoint.keep_last > 0) {
    int64_t kept = checkpoint.keep_last + (checkpoint.keep_best.empty() ? 0 : 1);
    if (checkpoint.keep_every_steps > 0) kept += every(checkpoint.keep_every_steps);
    found.kept = std::min(found.kept, kept);
  }
  return found;
}

}  // namespace planwright
