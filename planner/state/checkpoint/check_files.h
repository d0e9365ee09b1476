// Reads a checkpoint and proves it whole (`plan checkpoint verify`).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/state/checkpoint/format.h"

namespace planwright {

struct CheckpointProblem {
  std::string file;  // relative to the checkpoint: "rank-00003.safetensors"
  std::string what;  // "tensor language.norm.weight has another digest: ..."
};

// Every byte is read: sizes and digests of plan, indices, headers and tensors; what two files say is the same; and over
// all shards each element of each tensor comes once. What must be finite to be loaded is finite. A file that is named
// like a shard or an index, but is not in the manifest, is a problem; other files are not looked at. So is the name of
// the folder, or the run directory that it lies in, if the manifest is of another one.
// `proven`: whether the plan keeps the rules of verify; only then are the tensors compared with those that it needs.
// `progress(done, all)`: bytes; one call at a time, from any thread. Threads: at most `threads` shards are read at
// once.
std::vector<CheckpointProblem> CheckCheckpointFiles(const std::string& folder, int threads,
                                                    const std::function<bool(const Plan&)>& proven,
                                                    const std::function<void(int64_t, int64_t)>& progress = {});

}  // namespace planwright
