// What steps of a probe took, by the records of its run.
#include "planner/run/measure/probed_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "planner/wire/records/evaluation_record.h"
#include "planner/wire/records/step_record.h"

namespace planwright {
namespace {

using ::testing::HasSubstr;

std::string LineOf(int64_t step, double seconds) {
  StepRecord record;
  record.step = step, record.consumed_samples = 8 * step, record.step_seconds = seconds;
  return StepJson(record) + "\n";
}

class ProbedSteps : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(mkdtemp(run_dir_.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(run_dir_); }

  std::string run_dir_ = (std::filesystem::temp_directory_path() / "planwright_probed_XXXXXX").string();
};

// The first steps, which were not measured, and those behind count nothing.
TEST_F(ProbedSteps, TakesTheMedianOfTheMeasuredSteps) {
  std::ofstream(StepsPath(run_dir_)) << LineOf(1, 9) << LineOf(2, 0.5) << LineOf(3, 0.2)
                                     << EvaluationJson({.step = 3, .consumed_samples = 24, .seconds = 4}) << "\n"
                                     << LineOf(4, 0.3) << LineOf(5, 7) << LineOf(6, 8);
  EXPECT_DOUBLE_EQ(MedianStep(run_dir_, {3, 5}).value(), 0.3);
}

TEST_F(ProbedSteps, SaysWhichStepsAreNotThere) {
  const auto problem = [&] { return std::string(MedianStep(run_dir_, {3, 5}).status().message()); };
  EXPECT_THAT(problem(), HasSubstr(StepsPath(run_dir_)));
  std::ofstream(StepsPath(run_dir_)) << LineOf(2, 0.5) << LineOf(3, 0.2)
                                     << LineOf(4, std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(problem(), StepsPath(run_dir_) + " tells the time of 1 of the 3 steps from 3 to 5");
}

TEST_F(ProbedSteps, IsOffByAShareOfTheStep) {
  EXPECT_DOUBLE_EQ((ProbedStep{"", 2, 1.5}).off(), -0.25);
  EXPECT_DOUBLE_EQ((ProbedStep{"", 2, 3}).off(), 0.5);
}

}  // namespace
}  // namespace planwright
