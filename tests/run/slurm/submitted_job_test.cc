// What Slurm's programs say of a job, in their own words: those of Slurm 22.05.
#include "planner/run/slurm/submitted_job.h"

#include <gtest/gtest.h>

#include <string>

namespace planwright {
namespace {

using Is = SubmittedJob::Is;

TEST(SubmittedJob, OfTheController) {
  SubmittedJob job = {.id = "7"};
  ASSERT_TRUE(
      ReadScontrolJob("JobId=7 JobName=a UserId=me(1000) JobState=PENDING Reason=Resources Dependency=(null) "
                      "Requeue=1 Restarts=1 ExitCode=0:0 Comment=JobState=FAILED\n",
                      job));
  EXPECT_EQ(job.is, Is::kWaits);
  EXPECT_EQ(JobStateText(job), "PENDING (Resources)");
  job = {};
  ASSERT_TRUE(ReadScontrolJob("JobId=7 JobState=FAILED Reason=NonZeroExitCode ExitCode=127:0\n", job));
  EXPECT_EQ(job.is, Is::kOver);
  EXPECT_EQ(JobStateText(job), "FAILED (NonZeroExitCode), exit status 127");
  EXPECT_EQ(ExitStatusOf(job), 127);
  job = {};
  ASSERT_TRUE(ReadScontrolJob("JobId=7 JobState=CANCELLED Reason=None ExitCode=0:15\n", job));
  EXPECT_EQ(JobStateText(job), "CANCELLED, signal 15");
  EXPECT_EQ(ExitStatusOf(job), 10);
  job = {};
  ASSERT_TRUE(ReadScontrolJob("JobId=7 JobState=RUNNING Reason=None ExitCode=0:0\n", job));
  EXPECT_EQ(job.is, Is::kRuns);
  job = {};
  EXPECT_FALSE(ReadScontrolJob("slurm_load_jobs error\n", job));
}

TEST(SubmittedJob, OfTheAccounting) {
  SubmittedJob job = {.id = "7"};
  ASSERT_TRUE(ReadSacctJob("REQUEUED|0:0\nCANCELLED by 1000|0:9\n", job));
  EXPECT_EQ(job.is, Is::kOver);
  EXPECT_EQ(JobStateText(job), "CANCELLED, signal 9");
  job = {};
  EXPECT_FALSE(ReadSacctJob("\n", job));
}

TEST(SubmittedJob, OneThatSlurmHasForgottenIsOver) {
  const SubmittedJob job = {.is = Is::kOver, .id = "7"};
  EXPECT_EQ(JobStateText(job), "over, and Slurm says no more of it");
  EXPECT_EQ(ExitStatusOf(job), 10);
}

}  // namespace
}  // namespace planwright
