// What `plan checkpoint` prints: tables for people, and the same as JSON. Texts of files may be anyone's, so they are
// made printable.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "planner/state/checkpoint/check_files.h"
#include "planner/state/checkpoint/format.h"
#include "planner/state/checkpoint/run_lives.h"

namespace planwright {

// Bytes of all files of a checkpoint, without the manifest.
int64_t BytesOf(const Manifest& manifest);

// The checkpoints of a run, newest first, each with its state; of those that cannot be loaded, why.
std::string CheckpointsText(const CheckpointList& list, size_t width);
nlohmann::ordered_json CheckpointsJson(const CheckpointList& list);

// A tensor of a checkpoint, and the ranks whose shards have some of it.
struct ShardedTensor {
  DType dtype = DType::kFp32;
  std::vector<int64_t> shape;
  std::set<int> ranks;

  int64_t bytes() const;
};
struct StoredCheckpoint {
  std::string folder;
  Manifest manifest;
  std::map<std::string, ShardedTensor> tensors;  // by key
};

// The manifest in words, and what is kept of each weight, by module. Weights whose names differ by numbers alone are
// one row.
std::string CheckpointText(const StoredCheckpoint& checkpoint, size_t width);
nlohmann::ordered_json CheckpointJson(const StoredCheckpoint& checkpoint);

// What reading every byte of a checkpoint has found.
struct CheckedCheckpoint {
  std::string folder;
  int64_t bytes = 0;  // of its files; 0: the manifest is damaged
  std::vector<CheckpointProblem> problems;
  bool removed = false;  // while it was read: then the problems are no damage
};
std::string CheckedText(const CheckedCheckpoint& checked);
nlohmann::ordered_json CheckedJson(const CheckedCheckpoint& checked);

}  // namespace planwright
