// Where a trial lives, and what it replaces.
#include "planner/run/trial/trial_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "planner/run/launch/run_directory.h"
#include "planner/run/trial/trial_facts.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class TrialFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "trialXXXXXX";
    folder_ = mkdtemp(pattern.data());
    plan_ = testing::CompiledFile(InSource("recipes/nemotron_moe_vlm_tiny.yaml"), {"checkpoint.every_steps=2"});
  }
  void TearDown() override { fs::remove_all(folder_); }
  absl::Status Prepare() { return PrepareTrial(plan_, folder_ + "/a.try", {{"/data/a.tar"}, 0}, true); }

  std::string folder_;
  Plan plan_;
};

TEST(TrialFolder, LiesBesideTheRun) {
  EXPECT_EQ(TrialFolder("runs/a"), "runs/a.try");
  EXPECT_EQ(TrialFolder("runs/a/"), "runs/a.try");
}

TEST_F(TrialFolderTest, HasNoLivesAndIsReplacedByTheNext) {
  ASSERT_TRUE(Prepare().ok());
  EXPECT_EQ(ReadTrial(plan_, folder_ + "/a.try").files.paths, std::vector<std::string>{"/data/a.tar"});
  {
    const absl::StatusOr<RunDirectory> run = RunDirectory::Open(plan_, folder_ + "/a.try", /*trial=*/true);
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_FALSE(fs::exists(folder_ + "/a.try/lives"));
    EXPECT_THAT(std::string(Prepare().message()), HasSubstr("a trial runs in "));
  }
  // No launch takes it for progress.
  EXPECT_TRUE(absl::IsAlreadyExists(RunDirectory::Open(plan_, folder_ + "/a.try").status()));
  ASSERT_TRUE(Prepare().ok());
  EXPECT_FALSE(fs::exists(folder_ + "/a.try/plan.json"));
}

TEST_F(TrialFolderTest, NothingElseIsRemoved) {
  fs::create_directories(folder_ + "/a.try");
  std::ofstream(folder_ + "/a.try/notes.txt") << "mine";
  EXPECT_THAT(std::string(Prepare().message()), HasSubstr("holds something else than a trial"));
  EXPECT_TRUE(fs::exists(folder_ + "/a.try/notes.txt"));
}

TEST_F(TrialFolderTest, OneThatWaitsForItsJobStays) {
  ASSERT_TRUE(Prepare().ok());
  fs::create_directories(folder_ + "/a.try/job");
  std::ofstream(folder_ + "/a.try/job/launch.json") << "{}";
  EXPECT_THAT(std::string(Prepare().message()), HasSubstr("waits for its Slurm job"));
}

TEST_F(TrialFolderTest, ItsJobIsShort) {
  for (const auto& [time, of_trial] : {std::pair("", "10"), {"1-00:00:00", "10"}, {"4:00", "4:00"}}) {
    plan_.launch.time = time;
    plan_.launch.restarts = 3;
    const Plan trial = PlanOfTrial(plan_);
    EXPECT_EQ(trial.launch.time, of_trial);
    EXPECT_EQ(trial.launch.restarts, 0);
    EXPECT_EQ(trial.digest, plan_.digest);
  }
}

}  // namespace
}  // namespace planwright
