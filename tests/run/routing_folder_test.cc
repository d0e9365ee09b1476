#include "planner/wire/records/routing_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "planner/base/files/exit_status.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_limits.h"
#include "planner/run/launch/local_starter.h"
#include "planner/run/launch_run.h"
#include "planner/wire/records/routing_format.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kSteps = 4;

// Layers 1 and 3 have experts. A step has 8 * 16 tokens with 3 choices of 16 bits each.
Plan MoePlan() {
  Plan plan;
  plan.name = "toy";
  plan.world_size = 1;
  plan.precision = "fp32";
  plan.budget.sequence_length = 16;
  plan.budget.global_samples = 8;
  plan.budget.steps = kSteps;
  plan.data.kind = DataKind::kMock;
  plan.data.seed = 1234;
  Module module;
  module.name = "language";
  module.constants = {{"moe.experts", int64_t{8}}, {"moe.top_k", int64_t{3}}};
  for (int i = 0; i < 4; ++i) {
    module.layers.push_back({.kind = i % 2 ? 'E' : 'M', .frame = "language.layers." + std::to_string(i)});
    module.layers.back().expert_row = i % 2 ? i / 2 : -1;
  }
  plan.modules = {module};
  return plan;
}

class RoutingFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "routingXXXXXX";
    folder_ = mkdtemp(pattern.data());
    choices_ = folder_ + "/choices";
    launch_.executor = InBuild("bin/fake_rank");
    launch_.run_dir = folder_ + "/run";
  }
  void TearDown() override {
    std::filesystem::remove_all(folder_);
    unsetenv("FAKE_RANK_0");
  }

  // A run of `steps` steps whose ranks have written these choices.
  void Record(int64_t steps = kSteps) {
    RunOptions launch = launch_;
    launch.run_dir = folder_ + "/recording";
    launch.record_routing = choices_;
    launch.steps = steps;
    ASSERT_EQ(CheckRun(plan_, launch), absl::OkStatus());
    const absl::StatusOr<Outcome> outcome = LaunchRun({plan_}, launch, starter_, [](bool, std::string_view) {});
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    for (const char* frame : {"language.layers.1", "language.layers.3"})
      ASSERT_TRUE(WriteFileAtomically(RoutingPath(choices_, frame), std::string(steps * 8 * 16 * 3 * 2, 0)).ok());
  }
  absl::Status Replay(const Plan& plan, std::optional<int64_t> steps = std::nullopt) {
    launch_.replay_routing = choices_;
    launch_.steps = steps;
    return CheckRun(plan, launch_);
  }
  absl::Status RecordAgain(const Plan& plan) {
    launch_.record_routing = choices_;
    return CheckRun(plan, launch_);
  }

  std::string folder_, choices_;
  RunOptions launch_;
  LocalStarter starter_{"127.0.0.1", "a key"};
  Plan plan_ = MoePlan();
};

TEST_F(RoutingFolderTest, WhatWasRecordedIsReplayed) {
  Record();
  EXPECT_EQ(Replay(plan_), absl::OkStatus());
  EXPECT_EQ(Replay(plan_, 2), absl::OkStatus());
  EXPECT_EQ(Replay(plan_, 100), absl::OkStatus()) << "the run has 4 steps, whatever --steps says";
  Plan another = plan_;  // another layout, place and run
  another.modules[0].grid.tp = 2, another.modules[0].layers[1].stage = 1;
  another.budget.micro_samples = 4, another.budget.microbatches = 2, another.budget.block_samples = 4;
  another.data.base = "elsewhere", another.seed = 99, another.precision = "bf16", another.name = "other";
  EXPECT_EQ(Replay(another), absl::OkStatus());
}

TEST_F(RoutingFolderTest, EveryDifferenceIsNamed) {
  Record();
  using Change = std::function<void(Plan&)>;
  const std::vector<std::pair<Change, std::string>> kChanges = {
      {[](Plan& plan) { plan.budget.sequence_length = 32; }, "batch.sequence_length: expected 32, found 16\n"},
      {[](Plan& plan) { plan.budget.global_samples = 4; }, "batch.global_samples: expected 4, found 8\n"},
      {[](Plan& plan) { plan.modules[0].constants["moe.experts"] = int64_t{16}; },
       "language.moe.experts: expected 16, found 8\n"},
      {[](Plan& plan) { plan.modules[0].constants["moe.top_k"] = int64_t{2}; },
       "language.moe.top_k: expected 2, found 3\n"},
      {[](Plan& plan) { plan.modules[0].layers[3].expert_row = -1; },
       "language.moe.layers: expected [1], found [1,3]\n"},
      {[](Plan& plan) { plan.data.seed = 5; }, "data.seed: expected 5, found 1234\n"},
      {[](Plan& plan) { plan.data.text_tokens = 7; }, "data.text_tokens: expected 7, found none\n"},
      {[](Plan& plan) { plan.data.kind = DataKind::kRecorded; }, "data.kind: expected \"recorded\", found \"mock\"\n"}};
  Plan all = plan_;
  for (const auto& [change, text] : kChanges) {
    Plan plan = plan_;
    change(plan), change(all);
    const absl::Status status = Replay(plan);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(choices_), HasSubstr("fit this plan:\n  " + text)))
        << text;
  }
  all.budget.steps = 9;
  const std::string message(Replay(all).message());
  for (const auto& [change, text] : kChanges) EXPECT_THAT(message, HasSubstr("  " + text));
  EXPECT_THAT(message, HasSubstr("  steps: expected at least 9, found 4\nuse them with the recipe that recorded"));
}

TEST_F(RoutingFolderTest, AFieldThatThePlanLacksIsADifference) {
  plan_.data.text_tokens = 7;
  Record();
  EXPECT_THAT(std::string(Replay(MoePlan()).message()), HasSubstr("data.text_tokens: expected none, found 7\n"));
}

TEST_F(RoutingFolderTest, MoreStepsThanRecordedAreRefused) {
  Record(2);
  EXPECT_EQ(Replay(plan_, 2), absl::OkStatus());
  EXPECT_THAT(std::string(Replay(plan_, 3).message()), HasSubstr("steps: expected at least 3, found 2\n"));
  const std::string whole(Replay(plan_).message());
  EXPECT_THAT(whole, AllOf(HasSubstr("steps: expected at least 4, found 2\n"), HasSubstr("--steps 2 at most")));
}

TEST_F(RoutingFolderTest, AFolderWithoutChoicesIsNotReplayed) {
  const absl::Status missing = Replay(plan_);
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("there is no folder " + choices_));
  std::filesystem::create_directory(choices_);
  const absl::Status empty = Replay(plan_);
  EXPECT_EQ(empty.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(empty.message()), HasSubstr(choices_ + " holds no record of choices"));
}

TEST_F(RoutingFolderTest, ARecordThatIsIncompleteIsNotReplayed) {
  Record(2);
  std::filesystem::resize_file(RoutingPath(choices_, "language.layers.3"), 10);
  const absl::Status cut = Replay(plan_, 1);
  EXPECT_EQ(cut.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(cut.message()), HasSubstr("language.layers.3.i16 has 10 bytes, expected 1536"));
  std::filesystem::remove(RoutingPath(choices_, "language.layers.1"));
  EXPECT_THAT(std::string(Replay(plan_, 1).message()), HasSubstr("language.layers.1.i16 cannot be read: No such file"));
  for (const char* text : {"{\"steps\": 2", "[2]", "{}", "{\"steps\": \"2\"}", "2"}) {
    ASSERT_TRUE(WriteFileAtomically(RoutingSummaryPath(choices_), text).ok());
    EXPECT_THAT(std::string(Replay(plan_, 1).message()), HasSubstr("routing.json is damaged")) << text;
  }
}

TEST_F(RoutingFolderTest, TheChoicesOfARunThatFailedAreNotReplayed) {
  setenv("FAKE_RANK_0", "exit=10", 1);
  Record();
  const absl::Status status = Replay(plan_);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("is not done, or has failed"));
}

TEST_F(RoutingFolderTest, NothingIsRecordedOverChoices) {
  Record();
  const std::string summary = ReadWholeFile(RoutingSummaryPath(choices_), SIZE_MAX).value_or("(missing)");
  for (const char* remove : {"language.layers.1.i16", "language.layers.3.i16", ""}) {
    const absl::Status status = RecordAgain(plan_);
    EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
    EXPECT_THAT(std::string(status.message()), HasSubstr(choices_ + " already holds recorded choices"));
    if (*remove != 0) std::filesystem::remove(choices_ + "/" + remove);
  }
  // Two runs that start at once: one has claimed the folder after the other's check.
  const absl::StatusOr<Outcome> outcome = LaunchRun({plan_}, launch_, starter_, [](bool, std::string_view) {});
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->exit_code, kExitUsage);
  EXPECT_THAT(outcome->cause, HasSubstr("another run records into " + choices_));
  EXPECT_EQ(ReadWholeFile(RoutingSummaryPath(choices_), SIZE_MAX).value_or("(missing)"), summary);
}

TEST_F(RoutingFolderTest, ALaterLifeFindsTheClaimOfItsRun) {
  ASSERT_EQ(ClaimRoutingFolder(choices_, "run 1", /*goes_on=*/false), absl::OkStatus());
  EXPECT_EQ(ClaimRoutingFolder(choices_, "run 1", /*goes_on=*/true), absl::OkStatus());
  EXPECT_EQ(ClaimRoutingFolder(choices_, "run 1", /*goes_on=*/false), absl::OkStatus()) << "of a life without steps";
  for (const bool goes_on : {false, true}) {
    const absl::Status other = ClaimRoutingFolder(choices_, "run 2", goes_on);
    EXPECT_EQ(other.code(), absl::StatusCode::kAlreadyExists);
    EXPECT_THAT(std::string(other.message()), HasSubstr("another run records into " + choices_));
  }
  EXPECT_THAT(std::string(Replay(plan_).message()), HasSubstr("is not done, or has failed"));
  EXPECT_EQ(RecordAgain(plan_).code(), absl::StatusCode::kAlreadyExists);
  ASSERT_EQ(FinishRoutingFolder(plan_, kSteps, choices_), absl::OkStatus());
  EXPECT_EQ(ClaimRoutingFolder(choices_, "run 1", /*goes_on=*/true).code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(RoutingFolderTest, AClaimThatIsGoneIsNotMadeAgain) {
  const absl::Status gone = ClaimRoutingFolder(choices_, "run 1", /*goes_on=*/true);
  EXPECT_EQ(gone.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(gone.message()), HasSubstr("the choices that this run has recorded in " + choices_));
  EXPECT_FALSE(std::filesystem::exists(choices_));
}

// Versions before 0.2 claimed a folder by an empty file.
TEST_F(RoutingFolderTest, AnEmptyClaimIsOfAnotherRun) {
  std::filesystem::create_directory(choices_);
  ASSERT_TRUE(ClaimFile(RoutingSummaryPath(choices_)).ok());
  EXPECT_EQ(ClaimRoutingFolder(choices_, "run 1", /*goes_on=*/true).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(Replay(plan_).message()), HasSubstr("is not done, or has failed"));
}

TEST_F(RoutingFolderTest, MoreExpertsThanTheFilesCanNameAreRefused) {
  Plan plan = plan_;
  for (Module& module : plan.modules) {
    if (module.experts() > 0) module.constants["moe.experts"] = int64_t{32769};
  }
  const absl::Status status = CheckRecordRouting(plan, choices_);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("at most 32768 experts, and language has 32769"));
}

TEST_F(RoutingFolderTest, ChoicesAloneAreNotOverwritten) {
  Record();
  std::filesystem::remove(RoutingSummaryPath(choices_));
  EXPECT_EQ(RecordAgain(plan_).code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(RoutingFolderTest, AFolderOfOtherFilesIsRecordedInto) {
  std::filesystem::create_directory(choices_);
  ASSERT_TRUE(WriteFileAtomically(choices_ + "/notes.txt", "mine").ok());
  EXPECT_EQ(RecordAgain(plan_), absl::OkStatus());
  choices_ += "/notes.txt";
  const absl::Status file = RecordAgain(plan_);
  EXPECT_EQ(file.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(file.message()), HasSubstr("--record-routing needs a folder"));
}

TEST_F(RoutingFolderTest, APlanWithoutExpertsIsRefused) {
  Record();
  Plan dense = plan_;
  for (LayerSummary& layer : dense.modules[0].layers) layer.expert_row = -1;
  const absl::Status replay = Replay(dense);
  EXPECT_EQ(replay.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(replay.message()), AllOf(HasSubstr("has experts"), HasSubstr("leave out --replay-routing")));
  choices_ += "_new";
  EXPECT_THAT(std::string(RecordAgain(dense).message()), HasSubstr("leave out --record-routing"));
}

TEST_F(RoutingFolderTest, ChecksWriteNothing) {
  EXPECT_EQ(RecordAgain(plan_), absl::OkStatus());
  launch_.record_routing.clear();
  EXPECT_FALSE(Replay(plan_).ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

}  // namespace
}  // namespace planwright
