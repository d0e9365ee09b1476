// A run directory with lives and with checkpoints of a few bytes.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "planner/base/digest/sha256.h"
#include "planner/state/checkpoint/run_id.h"
#include "planner/state/checkpoint/run_lives.h"

namespace planwright::testing {

class RunFolder : public ::testing::Test {
 protected:
  using string = std::string;
  using Kind = UnusableCheckpoint::Kind;

  inline static const string kRunId = string(32, 'a');

  void SetUp() override {
    string pattern = ::testing::TempDir() + "/run_livesXXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    run_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(run_); }

  static void Write(const string& path, const string& bytes) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
  }

  string FolderOf(int64_t step, int life) const { return run_ + "/checkpoints/" + CheckpointFolder(step, life); }

  // A checkpoint of one shard. Its index and shard are not valid ones: only their sizes count here.
  void Publish(int64_t step, int life, const string& run_id = kRunId, const string& plan = "plan") const {
    Manifest manifest;
    manifest.name = "tiny";
    manifest.plan_digest = manifest.recipe_digest = Sha256Hex(plan);
    manifest.precision = "fp32";
    manifest.world_size = 4;
    manifest.run_id = run_id;
    manifest.life = life;
    manifest.counters.step = manifest.counters.applied_steps = step;
    manifest.counters.consumed_samples = 8 * step;
    manifest.plan_bytes = 4;
    manifest.plan_sha256 = Sha256Hex("plan");
    manifest.shards = {{3, 100, 5, Sha256Hex("index")}};
    const string folder = FolderOf(step, life);
    Write(folder + "/" + kCheckpointPlanFile, "plan");
    Write(folder + "/" + IndexFile(3), "index");
    Write(folder + "/" + ShardFile(3), string(100, 'x'));
    Write(folder + "/" + kManifestFile, WriteManifest(manifest));
  }

  static LifeStart StartOf(int from_life, int64_t from_step) {
    return {.from_life = from_life, .from_step = from_step, .run_id = kRunId, .plan_digest = Sha256Hex("plan")};
  }
  // Takes the next life and notes how it begins.
  int Begin(int from_life = 0, int64_t from_step = 0) const {
    const absl::StatusOr<int> life = TakeLife(run_);
    EXPECT_TRUE(life.ok()) << life.status();
    EXPECT_TRUE(WriteLifeStart(run_, *life, StartOf(from_life, from_step)).ok());
    return *life;
  }

  CheckpointList List(int before) const {
    absl::StatusOr<CheckpointList> list = ListCheckpoints(run_, before);
    EXPECT_TRUE(list.ok()) << list.status();
    return list.ok() ? *std::move(list) : CheckpointList();
  }
  std::vector<string> Found(int before) const {
    std::vector<string> names;
    for (const FoundCheckpoint& found : List(before).found)
      names.push_back(std::filesystem::path(found.folder).filename());
    return names;
  }
  // What is said of a folder that is not usable; its kind must be `kind`.
  string WhyNot(int before, const string& folder, Kind kind) const {
    for (const UnusableCheckpoint& unusable : List(before).unusable) {
      if (unusable.folder != folder) continue;
      EXPECT_EQ(unusable.kind, kind) << unusable.why;
      return unusable.why;
    }
    return "usable";
  }

  string run_;
};

}  // namespace planwright::testing
