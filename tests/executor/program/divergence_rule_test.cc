// When a loss is too far above those before it, and that a run that resumes decides the same.
#include "executor/program/divergence_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace planwright::executor {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

TEST(DivergenceRule, ComparesWithTheSmallestLossOfItsWindow) {
  DivergenceRule rule(3, 2);
  for (const double loss : {5.0, 2.0, 4.0, 3.0}) EXPECT_FALSE(rule.Take(loss)) << loss;
  EXPECT_THAT(rule.window(), ElementsAre(2, 4, 3));
  EXPECT_FALSE(rule.Take(4.0)) << "exactly 2 times 2";
  EXPECT_THAT(rule.Take(6.5), Optional(3.0)) << "the 2 has left the window";
}

TEST(DivergenceRule, TheFirstStepHasNothingToCompareWith) {
  DivergenceRule rule(1, 1.5);
  EXPECT_FALSE(rule.Take(1e9));
  EXPECT_FALSE(rule.Take(1.0));
  EXPECT_THAT(rule.Take(2.0), Optional(1.0));
}

TEST(DivergenceRule, StepsWithoutAFiniteLossAreNotLookedAt) {
  DivergenceRule rule(2, 2);
  EXPECT_FALSE(rule.Take(1.0));
  EXPECT_FALSE(rule.Take(std::nullopt));
  EXPECT_FALSE(rule.Take(std::numeric_limits<double>::infinity()));
  EXPECT_FALSE(rule.Take(std::numeric_limits<double>::quiet_NaN()));
  EXPECT_THAT(rule.window(), ElementsAre(1));
}

TEST(DivergenceRule, GoesOnWithTheWindowOfACheckpoint) {
  DivergenceRule before(4, 2), after(4, 2), smaller(2, 2);
  for (const double loss : {1.0, 1.5, 1.8, 1.9, 1.7}) EXPECT_FALSE(before.Take(loss));
  after.Resume(before.window());
  EXPECT_EQ(after.window(), before.window());
  EXPECT_EQ(after.Take(3.1), before.Take(3.1));
  EXPECT_EQ(after.window(), before.window());
  smaller.Resume(before.window());
  EXPECT_EQ(smaller.window().size(), 2U) << "another recipe looks at fewer steps";
}

TEST(DivergenceRule, WithoutAFactorThereIsNone) {
  DivergenceRule rule(0, 0);
  for (const double loss : {1.0, 1e30}) EXPECT_FALSE(rule.Take(loss));
  EXPECT_TRUE(rule.window().empty());
}

}  // namespace
}  // namespace planwright::executor
