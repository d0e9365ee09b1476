// What a job takes over from the shell that submits it, and what it reads back when it runs.
#include "planner/run/slurm/job_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>

#include "nlohmann/json.hpp"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_limits.h"
#include "planner/plan/plan_json.h"
#include "planner/run/launch/rank_environment.h"
#include "planner/run/launch/recipe_environment.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

// A job may wait in the queue while `plan` is replaced by a version whose plans have fewer groups.
TEST(JobFiles, APlanWithTheGroupsOfBeforeIsReadWithoutThem) {
  const std::string earlier = InSource("tests/end_to_end/fifteen_groups/run/plan.json");
  const absl::StatusOr<std::string> text = ReadWholeFile(earlier, kPlanJson.bytes);
  ASSERT_TRUE(text.ok()) << text.status();
  const absl::StatusOr<Plan> before = ReadPlan(*text);
  ASSERT_TRUE(before.ok()) << before.status();
  ASSERT_EQ(before->groups.size(), 16U);
  JobFiles job = {.plans = {*before, *before}, .program = "/bin/plan", .folder = "/"};
  job.options.run_dir = ::testing::TempDir() + "job_files_test";
  ASSERT_TRUE(WriteJobFiles(job, "").ok());
  const absl::StatusOr<JobFiles> read = ReadJobFiles(job.options.run_dir);
  std::filesystem::remove_all(job.options.run_dir);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->plans.size(), 2U);
  for (const Plan& plan : read->plans) {
    EXPECT_EQ(plan.groups.size(), 10U);
    EXPECT_TRUE(ReadPlan(WritePlan(plan)).ok()) << "its ranks read it";
  }
}

using ::testing::HasSubstr;
using ::testing::Not;

class JobFilesTest : public ::testing::Test {
 protected:
  JobFilesTest() {
    setenv(kSecretVariable, "the caller's secret", 1);
    setenv(kLifeVariable, "the caller's life", 1);
    setenv("PLANWRIGHT_TIMEOUT_SECONDS", "17", 1);
  }
  ~JobFilesTest() override {
    for (const char* name : {kSecretVariable, kLifeVariable, "PLANWRIGHT_TIMEOUT_SECONDS"}) unsetenv(name);
  }
};

// A shell inside of a run, which submits another run.
TEST_F(JobFilesTest, TheCallersSecretIsNotTaken) {
  const Variables taken = VariablesOfShell();
  EXPECT_FALSE(taken.contains(kSecretVariable));
  EXPECT_FALSE(taken.contains(kLifeVariable));
  EXPECT_EQ(taken.at("PLANWRIGHT_TIMEOUT_SECONDS"), "17");
  JobFiles job;
  job.environment = taken;
  EXPECT_THAT(LaunchJson(job), Not(HasSubstr("the caller's")));
}

// Values that a recipe passes on are for ranks: head, srun and agents do not have them.
TEST_F(JobFilesTest, ValuesForRanksAreReadAgain) {
  JobFiles job;
  Plan plan;
  plan.launch.env = {"TOKEN_OF_TEST", "NCCL_DEBUG=INFO"};
  job.options.passed_on = {{"TOKEN_OF_TEST", "sesame"}};
  job.plans = {plan};
  job.options.run_dir = ::testing::TempDir() + "job_files_passed_on";
  ASSERT_TRUE(WriteJobFiles(job, "").ok());
  const std::string text = ReadWholeFile(job.options.run_dir + "/job/launch.json", SIZE_MAX).value_or("");
  std::filesystem::remove_all(job.options.run_dir);
  const nlohmann::json written = nlohmann::json::parse(text);
  EXPECT_EQ(written["passed_on"], (nlohmann::json{{"TOKEN_OF_TEST", "sesame"}}));
  EXPECT_TRUE(written["environment"].empty());
  const absl::StatusOr<Variables> variables = VariablesOfRecipe(plan.launch, job.options.passed_on);
  ASSERT_TRUE(variables.ok()) << variables.status();
  EXPECT_EQ(*variables, (Variables{{"NCCL_DEBUG", "INFO"}, {"TOKEN_OF_TEST", "sesame"}}));
}

// Each start of a job does what its launch was asked for.
TEST_F(JobFilesTest, OptionsOfTheLaunchAreReadAgain) {
  const absl::StatusOr<std::string> text =
      ReadWholeFile(InSource("tests/end_to_end/fifteen_groups/run/plan.json"), kPlanJson.bytes);
  ASSERT_TRUE(text.ok()) << text.status();
  absl::StatusOr<Plan> plan = ReadPlan(*text);
  ASSERT_TRUE(plan.ok()) << plan.status();
  JobFiles job = {.plans = {*std::move(plan)}, .program = "/bin/plan", .folder = "/"};
  job.options.run_dir = ::testing::TempDir() + "job_files_options";
  job.options.profile = {3, 4};
  job.options.accepted_data = "12ab";
  ASSERT_TRUE(WriteJobFiles(job, "").ok());
  const absl::StatusOr<JobFiles> read = ReadJobFiles(job.options.run_dir);
  std::filesystem::remove_all(job.options.run_dir);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->options.profile, (StepRange{3, 4}));
  EXPECT_EQ(read->options.accepted_data, "12ab");
}

TEST_F(JobFilesTest, OnlyTheOwnerReadsTheEnvironment) {
  std::string folder = ::testing::TempDir() + "job_filesXXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  JobFiles job;
  job.environment = VariablesOfShell();
  job.options.run_dir = folder;
  ASSERT_TRUE(WriteJobFiles(job, "#!/bin/sh\n").ok());
  struct stat about {};
  ASSERT_EQ(stat((folder + "/job/launch.json").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace planwright
