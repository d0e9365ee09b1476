// What a submitted job reads back when it runs.
#include "planner/slurm/job_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "planner/plan/plan_json.h"
#include "planner/run_files/file_io.h"

namespace planwright {
namespace {

// A job may wait in the queue while `plan` is replaced by a version whose plans have fewer groups.
TEST(JobFiles, APlanWithTheGroupsOfBeforeIsReadWithoutThem) {
  const std::string earlier = PLANWRIGHT_SOURCE_DIR "/tests/end_to_end/fifteen_groups/run/plan.json";
  const absl::StatusOr<std::string> text = ReadWholeFile(earlier);
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

}  // namespace
}  // namespace planwright
