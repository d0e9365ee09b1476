// A checkpoint as whole tensors. Reads the files as docs/checkpoints.md describes them, with nothing of the product, so
// that it can judge what the product wrote.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace planwright::testing {

struct GatheredTensor {
  std::string dtype;
  std::vector<int64_t> shape;
  std::string bytes;  // of the whole tensor, row-major
  bool operator==(const GatheredTensor&) const = default;
};

struct GatheredCheckpoint {
  std::map<std::string, GatheredTensor> tensors;  // by key
  std::map<std::string, int64_t> counters;        // those of the manifest, by name
  int ranks = 0;                                  // that wrote a shard
  std::string problem;                            // what is wrong with the files; empty: nothing
};

// Every element of every tensor must be in exactly one shard.
GatheredCheckpoint GatherCheckpoint(const std::string& folder);

}  // namespace planwright::testing
