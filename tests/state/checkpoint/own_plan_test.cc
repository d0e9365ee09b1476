// The checkpoint of a real plan in a run directory: what manifest, plan, folder and life say alike is compared.
#include "planner/state/checkpoint/own_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "planner/state/checkpoint/run_lives.h"
#include "tests/state/checkpoint/changed_numbers.h"
#include "tests/state/checkpoint/plan_checkpoint.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;
using std::string;
using testing::Change;
using ::testing::HasSubstr;
using testing::ordered_json;
using testing::ReadBytes;
using testing::RefusedByResume;
using testing::RefusedByVerify;
using testing::WriteBytes;

class OwnPlan : public ::testing::Test {
 protected:
  void SetUp() override {
    string pattern = ::testing::TempDir() + "/own_planXXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    run_ = pattern;
    plan_ = testing::CompiledFile(InSource("recipes/nemotron_moe_vlm_tiny.yaml"),
                                  {"modules.language.placement.first_rank=1", "checkpoint.every_steps=2"});
    ASSERT_EQ(*TakeLife(run_), 1);
    ASSERT_TRUE(WriteLifeStart(run_, 1, testing::StartOf(plan_)).ok());
    folder_ = testing::WriteCheckpointOf(plan_, run_, 4, 1);
    manifest_ = *ReadManifest(ReadBytes(folder_ + "/" + kManifestFile));
  }
  void TearDown() override { fs::remove_all(run_); }

  // As rank 0 chooses, and each rank then reads.
  string Resume() const {
    const auto list = ListCheckpoints(run_, 2);
    if (!list.ok()) return string(list.status().message());
    if (list->found.empty()) return list->unusable.at(0).why;
    if (const auto plan = ReadAndCheckOwnPlan(folder_, manifest_); !plan.ok()) return string(plan.status().message());
    return RefusedByResume(folder_);
  }

  string run_, folder_;
  Plan plan_;
  Manifest manifest_;
};

TEST_F(OwnPlan, AManifestWithAnyNumberChangedIsRefused) {
  ASSERT_EQ(Resume() + RefusedByVerify(folder_), "");
  std::map<string, string> whole;
  for (const auto& entry : fs::directory_iterator(folder_)) whole[entry.path()] = ReadBytes(entry.path());
  int changes = 0;
  for (const Change& change : testing::ChangesOf(folder_)) {
    if (change.what.find("/tensors/") != string::npos) continue;  // identity_test.cc
    ++changes;
    change.make();
    EXPECT_NE(RefusedByVerify(folder_), "") << change.what;
    EXPECT_NE(Resume(), "") << change.what;
    for (const auto& [path, bytes] : whole) WriteBytes(path, bytes);
  }
  EXPECT_GT(changes, 30);
  ASSERT_EQ(Resume() + RefusedByVerify(folder_), "");
}

// The numbers of a manifest that follow from the plan, with the files beside it made for them: only the plan tells.
TEST_F(OwnPlan, WhatThePlanSaysIsCompared) {
  const auto refused = [&](const std::function<void(ordered_json&)>& change) {
    ordered_json json = ordered_json::parse(ReadBytes(folder_ + "/" + kManifestFile));
    change(json);
    const absl::StatusOr<Manifest> changed = ReadManifest(testing::ManifestText(json));
    EXPECT_TRUE(changed.ok()) << changed.status();
    const auto plan = ReadAndCheckOwnPlan(folder_, *changed);
    EXPECT_EQ(plan.status().code(), absl::StatusCode::kDataLoss);
    return string(plan.status().message());
  };
  EXPECT_THAT(refused([](auto& json) { json["world_size"] = 3; }),
              HasSubstr(folder_ + "/manifest.json: its world_size is 3; by the plan beside it, it is 2"));
  EXPECT_THAT(refused([](auto& json) { json["precision"] = "bf16"; }), HasSubstr("its precision is bf16"));
  EXPECT_THAT(
      refused([](auto& json) { json["consumed_samples"] = int64_t{1} << 52; }),
      HasSubstr("its consumed_samples is 4503599627370496 after 4 steps; by the plan beside it, a step takes 8"));
  EXPECT_THAT(refused([](auto& json) { json["step"] = int64_t{1} << 52; }), HasSubstr("after 4503599627370496 steps"));
  EXPECT_THAT(refused([](auto& json) { json["applied_steps"] = 1000; }),
              HasSubstr("its applied_steps and skipped_steps are 1000 and 0 after 4 steps"));
  EXPECT_THAT(refused([](auto& json) { json["data"]["a"] = string(64, '0'); }),
              HasSubstr("its data has a source a; the plan beside it has none of it"));
  EXPECT_THAT(refused([](auto& json) { json["plan_sha256"] = string(64, '0'); }),
              HasSubstr(folder_ + "/plan.json: its SHA-256 is "));
}

TEST_F(OwnPlan, WithAnyBitChangedIsNoticedByAResume) {
  const string path = folder_ + "/plan.json", bytes = ReadBytes(path);
  for (size_t at = 0; at < bytes.size(); at += bytes.size() / 60) {
    string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
    WriteBytes(path, damaged);
    EXPECT_THAT(Resume(), HasSubstr("plan.json: its SHA-256 is ")) << at;
    EXPECT_THAT(RefusedByVerify(folder_), HasSubstr("plan.json: its SHA-256 is ")) << at;
  }
}

// A plan that is none, with a manifest that is made for it; and one that another release has written.
TEST_F(OwnPlan, OfAnotherReleaseIsNotCompared) {
  const auto with = [&](const string& text) {
    Manifest manifest = manifest_;
    manifest.plan_bytes = static_cast<int64_t>(text.size());
    manifest.plan_sha256 = Sha256Hex(text);
    WriteBytes(folder_ + "/plan.json", text);
    EXPECT_TRUE(PublishManifest(folder_, manifest).ok());
    return ReadAndCheckOwnPlan(folder_, manifest);
  };
  for (const char* text : {"", "{}", "[1]", "{\"format_version\": \"2\"}", "{\"format_version\": 2}"})
    EXPECT_EQ(with(text).status().code(), absl::StatusCode::kDataLoss) << text;
  const auto older = with("{\"format_version\": 1}");
  ASSERT_TRUE(older.ok()) << older.status();
  EXPECT_FALSE(older->plan.has_value());
  EXPECT_THAT(older->unread, ::testing::StartsWith("the plan has format_version 1; this version of Planwright"));
  EXPECT_EQ(RefusedByVerify(folder_) + RefusedByResume(folder_), "");
}

// Every tensor that the plan needs is there, and no other, whatever the files say of each other.
TEST_F(OwnPlan, TensorsAreThoseOfThePlan) {
  Manifest fewer = manifest_;
  fewer.shards.erase(fewer.shards.begin());
  for (const string& name : {ShardFile(0), IndexFile(0)}) fs::remove(folder_ + "/" + name);
  ASSERT_TRUE(PublishManifest(folder_, fewer).ok());
  EXPECT_THAT(RefusedByVerify(folder_), HasSubstr("manifest.json: the checkpoint has no radio_encoder."));
}

// A folder says of which step and life it is, also where no run is around it.
TEST_F(OwnPlan, AFolderThatWasRenamedIsNamed) {
  const string renamed = run_ + "/checkpoints/step-00000006.life-1";
  fs::rename(folder_, renamed);
  EXPECT_THAT(RefusedByVerify(renamed), HasSubstr("it is that of step-00000004.life-1, not of step-00000006.life-1"));
  fs::rename(renamed, run_ + "/aside");
  EXPECT_EQ(RefusedByVerify(run_ + "/aside"), "");
}

}  // namespace
}  // namespace planwright
