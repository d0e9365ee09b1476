// Host memory of ranks, and how much of it the copies of a checkpoint get (docs/memory.md#host-memory).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

// What one rank of a role needs, in bytes.
struct HostMemory {
  const Role* role = nullptr;
  int64_t besides = 0;     // what it needs besides copies
  int64_t checkpoint = 0;  // most that it has to write to a checkpoint; 0: no checkpoints are written
  int64_t least = 0;       // through less it cannot be copied

  // What the copies take. `copy_bytes`: CheckpointPlan::copy_bytes.
  int64_t copies(int64_t copy_bytes) const {
    return copy_bytes == 0 || copy_bytes > checkpoint ? checkpoint : copy_bytes;
  }
};

// What a rank at coordinate 0 of all axes writes to a checkpoint: other ranks of the role write as much or less.
int64_t CheckpointBytes(const Plan& plan, const Role& role);

// In the order of Plan::roles. Pointers are into the plan.
std::vector<HostMemory> EstimateHostMemory(const Plan& plan);

// What CheckpointPlan::copy_bytes should be: 0 if all that the ranks of a node write fits into Cluster::host_memory
// beside them, or if that is not given. Else the same share for each rank that needs so much, on the fullest node.
int64_t ShareOfCopies(const Plan& plan);

// A node that needs more memory than Cluster::host_memory, or a rank whose copies have no room.
struct HostShortage {
  std::string problem, help;
};
std::optional<HostShortage> FindHostShortage(const Plan& plan);

}  // namespace planwright
