// Pace, use of time and throughput, by arithmetic that a reader can follow.
#include "planner/report/run_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/report/reports.h"

namespace planwright {
namespace {

using testing::KilledRun;
using testing::PointOf;
using testing::RunningRun;

TEST(TimeUse, AddsUp) {
  const std::optional<TimeUse> use = TimeUseOf(KilledRun());
  ASSERT_TRUE(use.has_value());
  EXPECT_DOUBLE_EQ(use->all, 60);
  EXPECT_DOUBLE_EQ(use->counted, 30) << "30 steps of a second";
  EXPECT_DOUBLE_EQ(use->again, 5) << "steps 11 to 15 of life 1";
  EXPECT_DOUBLE_EQ(use->between, 10) << "from 20 s to 30 s";
  EXPECT_DOUBLE_EQ(use->other, 15);
  EXPECT_DOUBLE_EQ(use->goodput(), 0.5);
}

TEST(TimeUse, OfARunThatGoesOnEndsNow) {
  EXPECT_DOUBLE_EQ(TimeUseOf(RunningRun())->all, 62);
  EXPECT_DOUBLE_EQ(TimeUseOf(RunningRun())->between, 10);
}

TEST(TimeUse, IsUnknownWithoutTimes) {
  RunReport report = KilledRun();
  report.lives[0].begin.reset();
  EXPECT_FALSE(TimeUseOf(report).has_value());
}

TEST(Pace, IsThatOfTheLastSteps) {
  RunReport report = RunningRun();
  for (size_t i = 0; i < 10; ++i) report.steps[i].seconds = 100;  // long ago
  const std::optional<Pace> pace = PaceOf(report);
  ASSERT_TRUE(pace.has_value());
  EXPECT_DOUBLE_EQ(pace->seconds, 1);
  EXPECT_DOUBLE_EQ(pace->samples_per_second, 8);
  EXPECT_DOUBLE_EQ(pace->tokens_per_second.value(), 800);
  EXPECT_DOUBLE_EQ(pace->left.value(), 30) << "30 more steps";
}

TEST(Pace, LeavesOutTheFirstStepOfALife) {
  RunReport report = RunningRun();
  report.steps[10].seconds = 50;  // step 11, which life 2 did first
  EXPECT_EQ(PaceOf(report)->steps, 19);
  EXPECT_DOUBLE_EQ(PaceOf(report)->left.value(), 30);
  report.steps.resize(11);
  EXPECT_DOUBLE_EQ(PaceOf(report)->seconds, 50) << "there is no other step of this life";
  report.steps.clear();
  EXPECT_FALSE(PaceOf(report).has_value());
}

TEST(Throughput, CountsTheSamplesOfEachStep) {
  RunReport report = KilledRun();
  // From step 16 on a step takes twice the samples, and has half the number.
  report.steps = {PointOf(14), PointOf(15), PointOf(8)};
  report.steps[2].samples = 128;
  EXPECT_EQ(SamplesOfSteps(report), (std::vector<int64_t>{8, 8, 16}));
  report.steps[1].seconds = 0;
  const auto throughput = ThroughputOfSteps(report);
  EXPECT_DOUBLE_EQ(throughput[0].value(), 800);
  EXPECT_FALSE(throughput[1].has_value());
  EXPECT_DOUBLE_EQ(throughput[2].value(), 1600);
}

}  // namespace
}  // namespace planwright
