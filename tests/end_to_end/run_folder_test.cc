// What a person does to the folder of a run: takes files away, brings those of another run, puts some of their own
// there. Nothing of it is lost, and nothing is taken for what it is not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "planner/base/files/exit_status.h"
#include "tests/end_to_end/checkpoint_run.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class RunFolderTest : public CheckpointRun {
 protected:
  std::string Away() const { return Folder() + "/away"; }
  std::string Metrics() const { return RunDir() + "/metrics.jsonl"; }
  std::vector<std::string> Notes() {
    const Ended report = Plan({"report", RunDir(), "--json"});
    return nlohmann::json::parse(report.output).at("notes").get<std::vector<std::string>>();
  }
};

// A disk that is not mounted: the first life has no checkpoint to name, but it has written down what it published.
TEST_F(RunFolderTest, ARunWhoseCheckpointsAreGoneDoesNotBeginAgain) {
  ASSERT_EQ(Run(4).status, 0);
  const std::string metrics = ReadAll(Metrics());
  fs::rename(Checkpoints(), Away());
  for (const bool empty : {false, true}) {
    if (empty) fs::create_directories(Checkpoints());
    const Ended refused = Run(6);
    EXPECT_EQ(refused.status, kExitDamaged) << refused.output;
    EXPECT_THAT(refused.output,
                AllOf(HasSubstr("life 1 of " + RunDir() + " published 2 checkpoints, the last of step 4"),
                      HasSubstr(empty ? Checkpoints() + " has none of them" : "there is no folder " + Checkpoints()),
                      HasSubstr("Bring them back."), HasSubstr("if that is meant, give another --run-dir")));
    EXPECT_EQ(ReadAll(Metrics()), metrics);
  }
  fs::remove_all(Checkpoints());
  fs::rename(Away(), Checkpoints());
  const Ended again = Run(6);
  EXPECT_EQ(again.status, 0) << again.output;
  EXPECT_THAT(again.output, HasSubstr("resuming after step 4"));
  ExpectCurve(6);
}

// Moved by somebody who thinks that the run is over, or with a disk that is unmounted.
TEST_F(RunFolderTest, ARunWhoseFolderIsMovedAwayDoesNotBeginAgain) {
  const Started launch =
      BeginPaused(kSteps, {.rank = 1, .list = "step", .step = 4}, {"launch.restarts=3", "checkpoint.every_steps=1"});
  WaitForPause(1);
  fs::rename(RunDir(), Away());
  const Ended ended = GoOn(launch);
  EXPECT_EQ(ended.status, kExitStorage) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("the run directory is lost: " + RunDir() + "/lives/1 is gone"));
  EXPECT_FALSE(fs::exists(RunDir())) << "nothing begins anew there";
}

TEST_F(RunFolderTest, ARunWhoseLivesAreGoneDoesNotBeginAgain) {
  ASSERT_EQ(Run(4).status, 0);
  const std::string metrics = ReadAll(Metrics());
  fs::rename(RunDir() + "/lives", Away());
  fs::rename(Checkpoints(), Folder() + "/checkpoints");
  fs::create_directories(RunDir() + "/lives");
  const Ended refused = Run(6);
  EXPECT_EQ(refused.status, kExitUsage) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("whose lives are gone: the folder lives is empty"));
  EXPECT_EQ(ReadAll(Metrics()), metrics);
}

// What another plan would change is asked of the checkpoint's own plan, too.
TEST_F(RunFolderTest, APlanThatIsGoneLetsNoOtherCurveIn) {
  ASSERT_EQ(Run(4).status, 0);
  fs::remove(RunDir() + "/plan.json");
  const Ended refused = Run(6, {"budget.learning_rate.peak=1.0e-3"});
  EXPECT_EQ(refused.status, kExitUsage) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("--accept-changes"));
  EXPECT_EQ(Run(6).status, 0);
  ExpectCurve(6);
}

TEST_F(RunFolderTest, MetricsThatAreGoneAreTold) {
  ASSERT_EQ(Run(4).status, 0);
  fs::rename(Metrics(), Away());
  const Ended ended = Run(6);
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_THAT(ended.output,
              HasSubstr("metrics.jsonl has no records behind sample 0, and the checkpoint is of sample 32"));
  EXPECT_EQ(Curve().size(), 2U);
}

TEST_F(RunFolderTest, MetricsOfAnotherRunAreNotThisOnes) {
  ASSERT_EQ(Run(6, {"data.seed=77"}).status, 0);
  const std::string other = ReadAll(Metrics());
  fs::remove_all(RunDir());
  ASSERT_EQ(Run(4).status, 0);
  const std::string own = ReadAll(Metrics());
  EXPECT_THAT(Notes(), Not(Contains(HasSubstr("metrics.jsonl"))));
  std::ofstream(Metrics()) << other;
  EXPECT_THAT(Notes(), Contains(AllOf(HasSubstr("6 records are of run "), HasSubstr("not counted"))));
  const Ended refused = Run(6);
  EXPECT_EQ(refused.status, kExitUsage) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr(Metrics() + " has records of run "));
  EXPECT_EQ(ReadAll(Metrics()), other) << "nothing is changed";
  // In the middle of a file, too.
  std::ofstream(Metrics()) << own << other;
  EXPECT_THAT(Plan({"report", RunDir()}).output, HasSubstr("step 4 of "));
  EXPECT_EQ(Run(6).status, kExitUsage);
  // Of a release before records had it: they are taken, and a note says so.
  std::string old = own;
  for (size_t at; (at = old.find(", \"run_id\"")) != std::string::npos;) old.erase(at, old.find('}', at) - at);
  std::ofstream(Metrics()) << old;
  EXPECT_THAT(Notes(), Contains(HasSubstr("4 records say no run")));
  const Ended ended = Run(6);
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_EQ(Curve().size(), 6U);
}

// Killed while it wrote: nobody needs what it has left, and it was never a checkpoint.
TEST_F(RunFolderTest, WhatAKilledLifeWasWritingIsRemoved) {
  const std::string left = Checkpoints() + "/step-00000004.life-1";
  const Ended killed =
      RunUntilKilled(kSteps, {.rank = 1, .list = "write", .step = 4, .number = -1, .waits = left + "/rank-00000.json"});
  ASSERT_EQ(killed.status, kExitPeerLost) << killed.output;
  ASSERT_TRUE(fs::exists(left + "/rank-00000.safetensors"));
  fs::create_directories(left + "/mine");
  EXPECT_THAT(Plan({"checkpoint", "ls", RunDir()}).output, HasSubstr("not published: it has no manifest.json"));
  const Ended next = Run(6);
  ASSERT_EQ(next.status, 0) << next.output;
  EXPECT_THAT(next.output, HasSubstr("resuming after step 2"));
  EXPECT_FALSE(fs::exists(left + "/rank-00000.safetensors"));
  EXPECT_TRUE(fs::exists(left + "/mine")) << "no run has put that there";
  const std::string list = Plan({"checkpoint", "ls", RunDir()}).output;
  EXPECT_THAT(list, AllOf(HasSubstr("only what no run has written: mine"), Not(HasSubstr("replaced"))));
  fs::remove(left + "/mine");
  ASSERT_EQ(Run(8).status, 0);
  EXPECT_FALSE(fs::exists(left)) << "an empty folder goes, too";
  ExpectCurve(8);
}

// Where a run writes by itself, nothing else is written; and what lies there nevertheless stays.
TEST_F(RunFolderTest, NothingOfAPersonIsRemovedWithACheckpoint) {
  const std::vector<std::string> one = {"checkpoint.keep_last=1"};
  ASSERT_EQ(Run(4, one).status, 0);
  const std::string checkpoint = Checkpoints() + "/step-00000004.life-1";
  const std::string recipe = Recipe(), words = checkpoint + "/x";
  const std::vector<std::vector<std::string>> commands = {
      {"export", RunDir(), "-o", checkpoint + "/hf"},
      {"export", RunDir(), "-o", Checkpoints() + "/hf"},
      {"compile", recipe, "-o", RunDir() + "/plan.json"},
      {"show", recipe, "--html", RunDir() + "/logs/page.html"},
      {"report", RunDir(), "--html", RunDir() + "/lives/page.html"},
      {"init", "-o", checkpoint + "/new.yaml"},
      {"tune", recipe, "--write", checkpoint + "/new.yaml"},
      {"measure", recipe, "-o", RunDir() + "/recorder/profile.json"},
      {"evaluate", RunDir(), recipe, "--run-dir", checkpoint + "/run"},
      {"launch", recipe, "--local", "--run-dir", Checkpoints() + "/run"},
      {"launch", recipe, "--local", "--run-dir", Folder() + "/other", "--probe", checkpoint + "/probe"},
      {"launch", recipe, "--local", "--run-dir", Folder() + "/other", "--record-routing", RunDir() + "/trace/x"},
      {"data", "trace", recipe, "0", "--images", checkpoint + "/images"},
      {"help", "--man", checkpoint + "/man"},
      {"import", Folder(), "-o", checkpoint + "/models.yaml"}};
  for (const std::vector<std::string>& command : commands) {
    const Ended refused = Plan(command);
    EXPECT_EQ(refused.status, kExitUsage) << command[0] << refused.output;
    EXPECT_THAT(refused.output, HasSubstr("name another place")) << command[0];
  }
  EXPECT_FALSE(fs::exists(Folder() + "/other"));
  EXPECT_EQ(Plan({"export", RunDir(), "-o", RunDir() + "/hf"}).status, 0);
  // Everything else that a run has there is its own.
  for (const fs::directory_entry& entry : fs::directory_iterator(RunDir())) {
    if (entry.path().filename() == "hf") continue;
    EXPECT_EQ(Plan({"compile", recipe, "-o", entry.path()}).status, kExitUsage) << entry.path();
  }
  fs::rename(RunDir() + "/hf", checkpoint + "/hf");
  ASSERT_EQ(Run(8, one).status, 0);
  ASSERT_EQ(Run(10, one).status, 0);
  EXPECT_FALSE(fs::exists(checkpoint + "/manifest.json"));
  EXPECT_TRUE(fs::exists(checkpoint + "/hf/config.json"));
  EXPECT_THAT(ReadAll(RunDir() + "/logs/rank0000.log") + ReadAll(RunDir() + "/lives/2/logs/rank0000.log"),
              HasSubstr("what no run has written stays: hf"));
}

}  // namespace
}  // namespace planwright::testing
