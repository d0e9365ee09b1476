// Writes the checkpoint of a plan as its ranks would: each rank its pieces, with values that follow from the keys and
// indices of elements.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "planner/base/digest/sha256.h"
#include "planner/plan/plan_json.h"
#include "planner/state/checkpoint/life_start.h"
#include "planner/state/checkpoint/pieces.h"
#include "planner/state/checkpoint/shard_writer.h"

namespace planwright::testing {

// The run that all checkpoints of these tests are of.
inline const std::string kRunId(32, 'a');

// Element `index` of tensor `key`: `bytes` bytes at `to`. Each is a finite number.
inline void FillElement(const std::string& key, int64_t index, int64_t bytes, std::byte* to) {
  const uint64_t value = std::hash<std::string>()(key) * 1000003 + static_cast<uint64_t>(index) * 2654435761u;
  std::memcpy(to, &value, bytes);
  to[bytes - 1] &= std::byte{0xbf};  // an exponent of all ones has this bit
}

// The checkpoint of a step, if no step is skipped.
inline CheckpointIdentity IdentityAt(const Plan& plan, int64_t step, int life) {
  return {kRunId, life, {step, step, 0, step * plan.budget.global_samples}};
}

// The shard of one rank in `folder`.
inline absl::StatusOr<ManifestShard> WriteRankOf(const Plan& plan, int rank, const std::string& folder,
                                                 const CheckpointIdentity& of) {
  std::vector<ShardSource> sources;
  std::vector<std::vector<std::byte>> bytes;
  for (const Module& module : plan.modules) {
    for (const CheckpointPiece& piece : PiecesToWrite(plan, module, rank)) {
      const int64_t each = DTypeBytes(piece.dtype);
      std::vector<std::byte>& of = bytes.emplace_back();
      for (const ElementRun& run : piece.runs) {
        for (int64_t i = 0; i < run.count; ++i) {
          of.resize(of.size() + each);
          FillElement(piece.key, run.whole + i, each, &of[of.size() - each]);
        }
      }
      sources.push_back({piece.key, piece.dtype, piece.shape, StridesOf(piece.runs), {}});
    }
  }
  for (size_t i = 0; i < sources.size(); ++i) sources[i].ranges = {bytes[i]};
  return WriteShard(folder, rank, of, sources);
}

// Publishes the checkpoint of `step` in RUN/checkpoints, and returns its folder.
inline std::string WriteCheckpointOf(const Plan& plan, const std::string& run_dir, int64_t step, int life,
                                     const std::map<std::string, std::string>& base = {}) {
  const std::string folder = run_dir + "/checkpoints/" + CheckpointFolder(step, life), text = WritePlan(plan);
  std::filesystem::create_directories(folder);
  EXPECT_TRUE(WriteDurably(folder, kCheckpointPlanFile, text).ok());
  Manifest manifest;
  manifest.name = plan.name;
  manifest.plan_digest = plan.digest, manifest.recipe_digest = plan.recipe_digest;
  manifest.precision = plan.precision;
  manifest.base = base;
  manifest.world_size = plan.world_size;
  const CheckpointIdentity of = IdentityAt(plan, step, life);
  manifest.run_id = of.run_id, manifest.life = life, manifest.counters = of.counters;
  manifest.plan_bytes = static_cast<int64_t>(text.size());
  manifest.plan_sha256 = Sha256Hex(text);
  for (int rank = 0; rank < plan.world_size; ++rank) {
    absl::StatusOr<ManifestShard> shard = WriteRankOf(plan, rank, folder, of);
    EXPECT_TRUE(shard.ok()) << shard.status();
    if (shard.ok()) manifest.shards.push_back(*std::move(shard));
  }
  const absl::Status published = PublishManifest(folder, manifest);
  EXPECT_TRUE(published.ok()) << published;
  return folder;
}

// How a life of the run begins that runs this plan.
inline LifeStart StartOf(const Plan& plan, int from_life = 0, int64_t from_step = 0) {
  return {.from_life = from_life, .from_step = from_step, .run_id = kRunId, .plan_digest = plan.digest};
}

}  // namespace planwright::testing
