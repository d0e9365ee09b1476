// Pace, use of time and throughput, by arithmetic that a reader can follow.
#include "planner/views/report/run_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/plan/evaluation_schedule.h"
#include "tests/views/report/reports.h"

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
  std::vector<StepPoint> points = testing::PointsTo(30);
  for (size_t i = 0; i < 10; ++i) points[i].seconds = 100;  // long ago
  report.steps = testing::SeriesOf(points);
  const std::optional<Pace> pace = PaceOf(report);
  ASSERT_TRUE(pace.has_value());
  EXPECT_DOUBLE_EQ(pace->seconds, 1);
  EXPECT_DOUBLE_EQ(pace->samples_per_second, 8);
  EXPECT_DOUBLE_EQ(pace->tokens_per_second.value(), 800);
  EXPECT_DOUBLE_EQ(pace->left.value(), 30) << "30 more steps";
}

TEST(Pace, LeavesOutTheFirstStepOfALife) {
  RunReport report = RunningRun();
  std::vector<StepPoint> points = testing::PointsTo(30);
  points[10].seconds = 50;  // step 11, which life 2 did first
  report.steps = testing::SeriesOf(points);
  EXPECT_EQ(PaceOf(report)->steps, 19);
  EXPECT_DOUBLE_EQ(PaceOf(report)->left.value(), 30);
  points.resize(11);
  report.steps = testing::SeriesOf(points);
  EXPECT_DOUBLE_EQ(PaceOf(report)->seconds, 50) << "there is no other step of this life";
  report.steps = {};
  EXPECT_FALSE(PaceOf(report).has_value());
}

TEST(DataWait, IsAPartOfTheStepsThatCount) {
  RunReport report = RunningRun();
  EXPECT_FALSE(PaceOf(report)->data_wait) << "of a run of an older version";
  EXPECT_FALSE(TimeUseOf(report)->data_wait);
  std::vector<StepPoint> points = testing::PointsTo(30);
  for (StepPoint& point : points) point.data_wait = 0.25;
  points[2].data_wait.reset();
  report.steps = testing::SeriesOf(points);
  EXPECT_DOUBLE_EQ(PaceOf(report)->data_wait.value(), 0.25);
  EXPECT_DOUBLE_EQ(TimeUseOf(report)->data_wait.value(), 29 * 0.25);
}

TEST(Throughput, CountsTheSamplesOfEachStep) {
  // From step 16 on a step takes twice the samples, and has half the number.
  std::vector<StepPoint> points = {PointOf(14), PointOf(15), PointOf(8)};
  points[1].seconds = 0;
  points[2].samples = 128;
  const StepSeries series = testing::SeriesOf(points);
  EXPECT_EQ(series.samples_of_last(), 16);
  EXPECT_DOUBLE_EQ(series.bins()[0].samples_per_second.mean, 8);
  EXPECT_EQ(series.bins()[1].samples_per_second.count, 0);
  EXPECT_DOUBLE_EQ(series.bins()[2].samples_per_second.mean, 16);
}

TEST(Evaluations, CountInTheTimeAndInWhatIsLeft) {
  const RunReport report = testing::EvaluatedRun();
  const std::optional<TimeUse> use = TimeUseOf(report);
  ASSERT_TRUE(use.has_value());
  EXPECT_EQ(use->evaluation, 8);
  EXPECT_EQ(use->other, 50 - 30 - 5 - 8);  // lives of 20 s and 30 s, 30 steps, and 5 that were done again
  RunReport half = testing::EvaluatedRun();
  half.plan->steps = 65;
  EXPECT_EQ(EvaluationsToCome(half), 4) << "after steps 40, 50, 60 and 65";
  EXPECT_DOUBLE_EQ(PaceOf(half)->left.value(), 35 * 1.0 + 4 * 2.0);
  EXPECT_EQ(EvaluationsToCome(testing::KilledRun()), 0);
}

TEST(Evaluations, OfOtherSamplesAreOfAnotherSet) {
  EvaluationSeries series;
  const auto add = [&](int64_t step, std::optional<double> loss, const std::string& samples) {
    series.Add({.step = step, .consumed_samples = 8 * step, .sets = {{"held_out", {loss, 10}, {}, samples}}});
  };
  add(0, 1.0, "old");
  add(10, 3.0, "new");
  EXPECT_EQ(series.best().at("held_out").loss, 3);
  EXPECT_EQ(series.Curve("held_out").size(), 1U);
  add(20, 2.5, "new");
  add(30, std::nullopt, "new");
  EXPECT_EQ(series.best().at("held_out").step, 20);
  EXPECT_EQ(series.Curve("held_out").size(), 2U);
  EXPECT_TRUE(series.Curve("unknown").empty());
  add(40, std::nullopt, "newer");
  EXPECT_FALSE(series.best().contains("held_out"));
}

TEST(EvaluationSchedule, SaysAfterWhichSteps) {
  const EvaluationSchedule schedule{.steps = 11, .global_samples = 8, .every_samples = 32};
  std::vector<int64_t> due;
  for (int64_t step = 0; step <= 11; ++step) {
    EXPECT_EQ(schedule.ComeAfter(step),
              3 - static_cast<int64_t>(step >= 4) - static_cast<int64_t>(step >= 8) - static_cast<int64_t>(step >= 11));
    if (schedule.DueAfter(step)) due.push_back(step);
  }
  EXPECT_EQ(due, (std::vector<int64_t>{0, 4, 8, 11}));
  EXPECT_FALSE(EvaluationSchedule{}.DueAfter(0));
}

}  // namespace
}  // namespace planwright
