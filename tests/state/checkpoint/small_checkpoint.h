// Writes small checkpoints for tests: tensors of known values, whose elements are dealt to ranks.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "planner/base/digest/sha256.h"
#include "planner/state/checkpoint/shard_writer.h"

namespace planwright::testing {

// A fresh empty folder.
inline std::string FreshFolder(const std::string& name) {
  const std::string path = ::testing::TempDir() + "checkpoint_test_" + name;
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return path;
}

// Files of a folder, sorted.
inline std::vector<std::string> FilesOf(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

inline std::string Slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

inline void Spill(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  ASSERT_TRUE(file.flush()) << path;
}

// A tensor: which rank has which elements.
struct DealtTensor {
  std::string key;
  DType dtype = DType::kFp32;
  std::vector<int64_t> shape;
  std::map<int, std::vector<ElementStride>> ranks;
};

// The run that all checkpoints of these tests are of.
inline const std::string kRunId(32, 'a');

// A plan of a release before this one, so that nothing but its digest is looked at.
inline const std::string kOldPlan = "{\"format_version\": 1, \"name\": \"small\"}\n";

// The bytes of element `index`: another number for each tensor and element, which is finite.
inline std::string ElementBytes(const DealtTensor& tensor, int64_t index) {
  const uint64_t value = std::hash<std::string>()(tensor.key) * 1000003 + static_cast<uint64_t>(index) * 2654435761u;
  std::string bytes(reinterpret_cast<const char*>(&value), DTypeBytes(tensor.dtype));
  bytes.back() = static_cast<char>(bytes.back() & ~0x40);  // an exponent of all ones has this bit
  return bytes;
}

// All bytes of some elements, in their order.
inline std::string BytesOf(const DealtTensor& tensor, const std::vector<ElementStride>& elements) {
  std::string bytes;
  for (const ElementRun& run : RunsOf(elements)) {
    for (int64_t i = 0; i < run.count; ++i) bytes += ElementBytes(tensor, run.whole + i);
  }
  return bytes;
}

inline std::span<const std::byte> Span(const std::string& bytes) {
  return {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()};
}

inline CheckpointIdentity SmallIdentity() { return {kRunId, 1, {100, 99, 1, 6400}}; }

// Writes the shard of one rank, in ranges of a few bytes.
inline absl::StatusOr<ManifestShard> WriteRank(const std::string& folder, int rank,
                                               const std::vector<DealtTensor>& tensors) {
  std::vector<std::string> bytes;
  std::vector<ShardSource> sources;
  bytes.reserve(tensors.size());
  for (const DealtTensor& tensor : tensors) {
    const auto mine = tensor.ranks.find(rank);
    if (mine == tensor.ranks.end()) continue;
    ShardSource source{tensor.key, tensor.dtype, tensor.shape, mine->second, {}};
    bytes.push_back(BytesOf(tensor, mine->second));
    for (size_t first = 0; first < bytes.back().size(); first += 7)
      source.ranges.push_back(Span(bytes.back()).subspan(first, std::min<size_t>(7, bytes.back().size() - first)));
    sources.push_back(source);
  }
  return WriteShard(folder, rank, SmallIdentity(), sources);
}

// Writes and publishes a checkpoint.
inline Manifest WriteCheckpoint(const std::string& folder, int world_size, const std::vector<DealtTensor>& tensors) {
  EXPECT_TRUE(WriteDurably(folder, kCheckpointPlanFile, kOldPlan).ok());
  Manifest manifest;
  manifest.name = "small";
  manifest.world_size = world_size;
  manifest.run_id = SmallIdentity().run_id;
  manifest.counters = SmallIdentity().counters;
  manifest.plan_bytes = static_cast<int64_t>(kOldPlan.size());
  manifest.plan_sha256 = Sha256Hex(kOldPlan);
  for (int rank = 0; rank < world_size; ++rank) {
    const auto shard = WriteRank(folder, rank, tensors);
    EXPECT_TRUE(shard.ok()) << shard.status();
    if (shard.ok()) manifest.shards.push_back(*shard);
  }
  const absl::Status published = PublishManifest(folder, manifest);
  EXPECT_TRUE(published.ok()) << published;
  return manifest;
}

// Three ranks: a tensor cut along dim 1, one in flat ranges, whole ones of every type, one without elements.
inline std::vector<DealtTensor> SmallTensors() {
  return {{"language.w", DType::kFp32, {4, 6}, {{0, {{0, 2, 6, 4}}}, {1, {{2, 2, 6, 4}}}, {2, {{4, 2, 6, 4}}}}},
          {"language.w.exp_avg", DType::kFp64, {11}, {{0, {{0, 4, 0, 1}}}, {1, {{4, 4, 0, 1}}}, {2, {{8, 3, 0, 1}}}}},
          {"language.norm", DType::kBf16, {5}, {{1, {{0, 5, 0, 1}}}}},
          {"language.bias", DType::kFp32, {2, 3}, {{2, {{0, 6, 0, 1}}}}},
          {"step", DType::kInt64, {}, {{0, {{0, 1, 0, 1}}}}},
          {"none", DType::kFp32, {0, 3}, {{0, {}}}}};
}

}  // namespace planwright::testing
