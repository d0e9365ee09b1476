// What a job takes over from the shell that submits it.
#include "planner/slurm/job_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>

#include "planner/launch/rank_environment.h"

namespace planwright {
namespace {

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
  const Variables taken = EnvironmentToTake();
  EXPECT_FALSE(taken.contains(kSecretVariable));
  EXPECT_FALSE(taken.contains(kLifeVariable));
  EXPECT_EQ(taken.at("PLANWRIGHT_TIMEOUT_SECONDS"), "17");
  JobFiles job;
  job.environment = taken;
  EXPECT_THAT(LaunchJson(job), Not(HasSubstr("the caller's")));
}

TEST_F(JobFilesTest, OnlyTheOwnerReadsTheEnvironment) {
  std::string folder = ::testing::TempDir() + "job_filesXXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  JobFiles job;
  job.environment = EnvironmentToTake();
  job.options.run_dir = folder;
  ASSERT_TRUE(WriteJobFiles(job, "#!/bin/sh\n").ok());
  struct stat about {};
  ASSERT_EQ(stat((folder + "/job/launch.json").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace planwright
