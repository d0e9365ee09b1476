// Reads a checkpoint and proves it whole, without the plan that wrote it (`plan checkpoint verify`).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "planner/checkpoint/format.h"

namespace planwright {

struct CheckpointProblem {
  std::string file;  // relative to the checkpoint: "rank-00003.safetensors"
  std::string what;  // "tensor language.norm.weight has another digest: ..."
};

// Every byte is read: sizes and digests of indices, headers and tensors; entries of shards and of indices are the same;
// and over all shards each element of each tensor comes once. A file that is named like a shard or an index, but is not
// in the manifest, is a problem; other files are not looked at. `progress(done, all)`: bytes; one call at a time, from
// any thread. Threads: at most `threads` shards are read at once.
std::vector<CheckpointProblem> CheckCheckpointFiles(const std::string& folder, int threads,
                                                    const std::function<void(int64_t, int64_t)>& progress = {});

}  // namespace planwright
