// When a run ends before its last step, by what all ranks read of its steps.
#include "executor/program/stop_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "executor/program/exit_error.h"
#include "planner/base/files/exit_status.h"

namespace planwright::executor {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Plan PlanWithBridge(double limit) {
  Plan plan;
  plan.origins = {{"toy.yaml", 7, 1, "bridge"}};
  plan.bridges.push_back({.from = "encoder", .to = "language", .max_mean_square = limit, .origin = 0});
  return plan;
}

StepRecord Record(int64_t step, bool skipped = false, std::optional<double> mean_square = std::nullopt) {
  StepRecord record;
  record.step = step;
  record.skipped = skipped;
  record.module_grad_norms = {{"encoder", 1.0}, {"language", skipped ? kNaN : 1.0}};
  record.bridge_mean_squares = {{"encoder->language", mean_square}};
  return record;
}

// The message of the ExitError with which the rules end the run; empty: it goes on.
std::string EndOf(StopRules& rules, const StepRecord& record) {
  try {
    rules.Take(record, 0);
  } catch (const ExitError& error) {
    EXPECT_EQ(error.status(), kExitNumerics);
    return error.what();
  }
  return "";
}

TEST(StopRules, TenSkippedStepsInARowEndTheRun) {
  const Plan plan = PlanWithBridge(0);
  StopRules rules(plan, 0);
  int64_t step = 0;
  for (int i = 0; i < 9; ++i) EXPECT_EQ(EndOf(rules, Record(++step, true)), "");
  EXPECT_EQ(EndOf(rules, Record(++step)), "");  // one good step, and they are counted anew
  for (int i = 0; i < 9; ++i) EXPECT_EQ(EndOf(rules, Record(++step, true)), "") << step;
  // Also if the tenth is of another life.
  ManifestNotes notes;
  rules.Note(notes);
  EXPECT_EQ(notes.skipped_in_a_row, 9);
  StopRules resumed(plan, 0);
  resumed.Resume(notes);
  ++step;
  for (StopRules* each : {&rules, &resumed}) {
    EXPECT_EQ(EndOf(*each, Record(step, true)),
              "10 steps in a row had a gradient norm that is not finite, in language");
  }
}

TEST(StopRules, ALossThatGrowsEndsTheRun) {
  Plan plan = PlanWithBridge(0);
  plan.divergence = {.window = 2, .factor = 1.5};
  const auto take = [](StopRules& rules, int64_t step, double loss) -> std::string {
    StepRecord record = Record(step);
    record.loss = loss;
    try {
      rules.Take(record, 0);
    } catch (const ExitError& error) {
      EXPECT_EQ(error.status(), kExitDiverged);
      return error.what();
    }
    return "";
  };
  StopRules rules(plan, 0);
  EXPECT_EQ(take(rules, 1, 4), "");
  EXPECT_EQ(take(rules, 2, 5), "");
  ManifestNotes notes;
  rules.Note(notes);
  EXPECT_EQ(notes.recent_losses, (std::vector<double>{4, 5}));
  StopRules resumed(plan, 0);
  resumed.Resume(notes);
  for (StopRules* each : {&rules, &resumed}) {
    EXPECT_EQ(take(*each, 3, 6.5),
              "step 3: the loss 6.5 is more than divergence.factor 1.5 times 4, the smallest of the 2 steps before");
  }
}

TEST(StopRules, AMeanSquareBeyondItsLimitEndsTheRun) {
  const Plan plan = PlanWithBridge(4);
  StopRules rules(plan, 0);
  EXPECT_EQ(EndOf(rules, Record(1, false, 4.0)), "");
  EXPECT_EQ(EndOf(rules, Record(2)), "");  // no image in this step
  EXPECT_EQ(EndOf(rules, Record(3, false, 4.5)),
            "step 3: the rows of bridge encoder->language have a mean square of 4.5, beyond max_mean_square 4\n"
            "  recipe: toy.yaml:7 (bridge)");
  for (const double value : {kNaN, kInfinity})
    EXPECT_THAT(EndOf(rules, Record(4, false, value)), ::testing::HasSubstr("beyond max_mean_square 4"));
}

TEST(StopRules, WithoutALimitAnyMeanSquarePasses) {
  const Plan plan = PlanWithBridge(0);
  StopRules rules(plan, 0);
  for (const double value : {1e30, kNaN, kInfinity}) EXPECT_EQ(EndOf(rules, Record(1, false, value)), "");
}

TEST(StopRules, ARequestStopsAllRanksAfterTheStepInWhichItCame) {
  const Plan plan = PlanWithBridge(0);
  StopRules rules(plan, 0);
  rules.Take(Record(1), 0);
  EXPECT_FALSE(rules.StopAfter(0));
  rules.Take(Record(2), 1);
  EXPECT_TRUE(rules.StopAfter(1));  // from 0: the second step
  EXPECT_TRUE(rules.StopAfter(2));
}

// One rank reads the numbers of step 3 at once, another one when it has launched four steps more. Each asks after each
// step that it has launched.
TEST(StopRules, RanksThatReadLaterStopAfterTheSameStep) {
  constexpr int64_t kLag = 4;
  const Plan plan = PlanWithBridge(0);
  for (const int64_t late : {0, 1, 4}) {
    StopRules rules(plan, kLag);
    int64_t stopped = -1;
    for (int64_t step = 0; step < 20 && stopped < 0; ++step) {
      if (step >= late) rules.Take(Record(step - late + 1), step - late + 1 >= 3 ? 2 : 0);
      if (rules.StopAfter(step)) stopped = step;
    }
    EXPECT_EQ(stopped, 2 + kLag) << late;
  }
}

}  // namespace
}  // namespace planwright::executor
