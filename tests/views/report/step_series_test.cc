// A series of steps in bounded memory says what the steps say.
#include "planner/views/report/step_series.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/views/report/reports.h"

namespace planwright {
namespace {

using testing::PointOf;
using testing::PointsTo;
using testing::SeriesOf;

TEST(StepSeries, OfAShortRunHasEachStep) {
  const auto most = static_cast<int64_t>(StepSeries::kMostBins);
  const StepSeries series = SeriesOf(PointsTo(most));
  ASSERT_EQ(series.bins().size(), StepSeries::kMostBins);
  for (int64_t i = 0; i < most; ++i) {
    const StepBin& bin = series.bins()[static_cast<size_t>(i)];
    ASSERT_EQ(bin.steps, 1);
    ASSERT_EQ(bin.first, i);
    ASSERT_EQ(bin.first_step, i + 1);
    ASSERT_EQ(bin.loss.mean, PointOf(i + 1).loss.value());
    ASSERT_EQ(series.IndexOfStep(i + 1), i);
    ASSERT_EQ(series.IndexOfSamples(8 * i + 1), i);
    ASSERT_EQ(series.FindSamples(8 * i + 8), i);
    ASSERT_FALSE(series.FindSamples(8 * i + 7).has_value());
    ASSERT_EQ(series.StepAt(i), i + 1);
  }
}

TEST(StepSeries, OfALongRunIsBoundedAndLosesNoStep) {
  constexpr int64_t kSteps = 100'003;
  std::mt19937_64 random(7);
  std::vector<StepPoint> points = PointsTo(kSteps);
  double sum = 0, least = 1e9, most = -1e9;
  for (StepPoint& point : points) {
    point.loss = std::uniform_real_distribution<double>(-3, 5)(random);
    sum += *point.loss, least = std::min(least, *point.loss), most = std::max(most, *point.loss);
    point.skipped = point.step % 100 == 0;
  }
  const StepSeries series = SeriesOf(points);
  EXPECT_LE(series.bins().size(), StepSeries::kMostBins);
  EXPECT_EQ(series.size(), kSteps);
  EXPECT_EQ(series.last().size(), StepSeries::kLastSteps);
  EXPECT_EQ(series.back().step, kSteps);
  EXPECT_EQ(series.front().step, 1);
  EXPECT_EQ(series.seconds(), kSteps);
  EXPECT_EQ(series.skipped(), kSteps / 100);
  EXPECT_EQ(series.first_skipped().size(), StepSeries::kMostSkipped);
  EXPECT_EQ(series.first_skipped()[1], std::pair(int64_t{199}, int64_t{200}));
  Spread all;
  int64_t next = 0;
  for (const StepBin& bin : series.bins()) {
    EXPECT_EQ(bin.first, next);
    EXPECT_EQ(bin.first_step, next + 1);
    next += bin.steps;
    EXPECT_EQ(bin.last_step, next);
    EXPECT_EQ(bin.last_samples, 8 * next);
    all.Add(bin.loss);
  }
  EXPECT_EQ(next, kSteps);
  EXPECT_EQ(all.count, kSteps);
  EXPECT_EQ(all.least, least);
  EXPECT_EQ(all.most, most);
  EXPECT_NEAR(all.mean, sum / kSteps, 1e-9);
  for (int64_t step : {1L, 2L, 77L, 50'000L, 100'002L, 100'003L}) {
    EXPECT_EQ(series.IndexOfStep(step), step - 1);
    EXPECT_EQ(series.IndexOfSamples(8 * step), step - 1);
    EXPECT_EQ(series.StepAt(step - 1), step);
  }
  EXPECT_EQ(series.IndexOfSamples(8 * kSteps + 1), kSteps);
  EXPECT_FALSE(series.IndexOfStep(kSteps + 1).has_value());
}

TEST(EvenChoice, IsAllOfFewAndSomeOfMany) {
  EvenChoice few, many;
  for (int64_t step = 1; step <= static_cast<int64_t>(EvenChoice::kMost); ++step) few.Add(PointOf(step));
  EXPECT_EQ(few.points().size(), EvenChoice::kMost);
  for (int64_t step = 1; step <= 1'000'000; ++step) many.Add(PointOf(step));
  EXPECT_LE(many.points().size(), EvenChoice::kMost);
  EXPECT_GT(many.points().size(), EvenChoice::kMost / 3);
  const int64_t distance = many.points()[1].step - many.points()[0].step;
  for (size_t i = 1; i < many.points().size(); ++i)
    EXPECT_EQ(many.points()[i].step - many.points()[i - 1].step, distance);
  EXPECT_GT(many.points().back().step + distance, 1'000'000);
}

}  // namespace
}  // namespace planwright
