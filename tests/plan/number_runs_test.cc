// Runs expand to the rows that they were made from, for any numbers, and tables of large bridges become few runs.
#include "planner/plan/number_runs.h"

#include <gtest/gtest.h>

#include <random>

#include "planner/base/text/limits.h"
#include "planner/plan/plan_json.h"

namespace planwright {
namespace {

template <size_t N>
std::vector<NumberRow<N>> Expanded(const std::vector<NumberRun<N>>& runs) {
  std::vector<NumberRow<N>> rows;
  for (const NumberRun<N>& run : runs) AppendRows(run, rows);
  return rows;
}

TEST(Runs, GiveBackAnyRows) {
  std::mt19937_64 random(5);
  const int64_t numbers[] = {0, 1, 2, 3, 7, -1, INT64_MAX, INT64_MIN};
  for (int round = 0; round < 2000; ++round) {
    std::vector<NumberRow<2>> rows;
    while (rows.size() < random() % 40) {
      NumberRun<2> run{.count = static_cast<int64_t>(1 + random() % 6)};
      for (size_t k = 0; k < 2; ++k) run.first[k] = numbers[random() % 8], run.step[k] = numbers[random() % 8];
      AppendRows(run, rows);
    }
    const auto runs = RunsOf(rows);
    EXPECT_EQ(Expanded(runs), rows);
    for (const auto& run : runs) EXPECT_TRUE(run.count == 1 || run.count >= static_cast<int64_t>(kShortestRun));
  }
}

TEST(Runs, EqualStepsOfAnySignAreOneRun) {
  EXPECT_EQ(RunsOf<1>({{9}, {7}, {5}, {3}, {1}}).size(), 1u);
  EXPECT_EQ(RunsOf<1>({{4}, {4}, {4}, {4}}).size(), 1u);
  EXPECT_EQ(RunsOf<1>({{1}, {2}, {3}}).size(), 3u);
  EXPECT_EQ(RunsOf<1>({{1}, {5}, {6}, {7}, {8}, {20}}).size(), 3u);
}

// A plan with one bridge between `lanes` lanes on each side.
Plan Lanes(int lanes) {
  Plan plan;
  plan.precision = "fp32";
  plan.world_size = 2 * lanes;
  plan.data.kind = DataKind::kRecorded;
  plan.optimizer = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .clip_grad_norm = 1.0};
  Bridge& bridge = plan.bridges.emplace_back();
  Group& group = plan.groups.emplace_back();
  for (int lane = 0; lane < lanes; ++lane) {
    bridge.forward.push_back({2 * lane + 1, 2 * (lanes + lane), lane, lane + 1});
    group.ranks.push_back(2 * lane);
  }
  plan.digest = PlanDigest(plan);
  return plan;
}

TEST(Runs, AFileHasThousandsOfLanesInOneLine) {
  const Plan plan = Lanes(100'000);
  const std::string text = WritePlan(plan);
  EXPECT_NEAR(text.size(), WritePlan(Lanes(4)).size(), 30);
  const auto again = ReadPlan(text);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->groups[0].ranks, plan.groups[0].ranks);
  ASSERT_EQ(again->bridges[0].forward.size(), 100'000u);
  EXPECT_EQ(again->bridges[0].forward.back().to_rank, plan.bridges[0].forward.back().to_rank);
}

TEST(Runs, AFileWithTooManyRowsIsRefused) {
  const std::string text = WritePlan(Lanes(1000));
  const auto refusal = [&](const std::string& from, const std::string& to) {
    std::string damaged = text;
    const size_t at = damaged.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    damaged.replace(at, from.size(), to);
    return std::string(ReadPlan(damaged).status().message());
  };
  const std::string row = "[1,2000,0,1,1000,2,2,1,1]";
  EXPECT_NE(refusal(row, "[1,2000,0,1,9000000000,2,2,1,1]").find("all runs of a plan together have at most 524288"),
            std::string::npos);
  EXPECT_NE(refusal(row, "[1,2000,0,1,0,2,2,1,1]").find("a run has count 0"), std::string::npos);
  EXPECT_NE(refusal(row, "[1,2000,0,1,1000,2]").find("a count and 4 steps in addition; found 6 numbers"),
            std::string::npos);
  EXPECT_NE(refusal(row, "[1,2000,0,1,1000,9999999,2,1,1]").find("rank numbers out of range"), std::string::npos);
  std::string many = row;
  for (int i = 0; i < 3; ++i) many += ",[1,2000,0,1,1000000,0,0,0,0]";
  EXPECT_NE(refusal(row, many).find("all runs of a plan together"), std::string::npos);
}

}  // namespace
}  // namespace planwright
