#include "planner/run/outcome/slow_ranks.h"

#include <gtest/gtest.h>

#include <map>

#include "planner/run/outcome/outcome_text.h"

namespace planwright {
namespace {

// One role of four ranks, and one of two.
Plan SixRanks() {
  Plan plan;
  plan.world_size = 6;
  plan.roles.resize(2);
  plan.roles[0].name = "language.s0", plan.roles[0].ranks = {{0, 4, 1}};
  plan.roles[1].name = "encoder.s0", plan.roles[1].ranks = {{4, 2, 1}};
  return plan;
}

// Ranks that record `seconds(rank, step)` for each step up to `last(rank)`; the recorder keeps the latest 64.
template <typename Seconds>
std::vector<SlowRank> Find(const std::map<int, int64_t>& last, Seconds seconds) {
  return FindSlowRanks(SixRanks(), [&](int rank) -> std::optional<RankPosition> {
    const auto found = last.find(rank);
    if (found == last.end()) return std::nullopt;
    RankPosition position;
    for (int64_t step = std::max<int64_t>(2, found->second - 63); step <= found->second; ++step)
      position.pace.push_back({step, static_cast<int64_t>(1e9 * seconds(rank, step))});
    return position;
  });
}

const std::map<int, int64_t> kAll = {{0, 100}, {1, 101}, {2, 100}, {3, 103}, {4, 100}, {5, 100}};

TEST(SlowRanks, IsTheOneThatComputesLongerThanOthersOfItsRole) {
  const auto slow = Find(kAll, [](int rank, int64_t) { return rank == 2 ? 0.5 : rank == 5 ? 0.9 : 0.25; });
  ASSERT_EQ(slow.size(), 1u);  // rank 5 has one rank to compare with
  EXPECT_EQ(SlowRankText(slow[0]),
            "rank 2 (language.s0) is slow: it computed 0.500 s a step, 2.0 times the median of its role, in steps "
            "81-100");
  EXPECT_EQ(OutcomeJson({.slow = slow})["slow_ranks"][0], (nlohmann::ordered_json{{"rank", 2},
                                                                                  {"role", "language.s0"},
                                                                                  {"first_step", 81},
                                                                                  {"last_step", 100},
                                                                                  {"step_seconds", 0.5},
                                                                                  {"median_seconds", 0.25}}));
}

TEST(SlowRanks, AreNotThoseThatAreALittleSlower) {
  EXPECT_TRUE(Find(kAll, [](int rank, int64_t) { return rank == 2 ? 0.37 : 0.25; }).empty());
}

// Two samples in place of one are no finding.
TEST(SlowRanks, AreNotFoundInStepsThatAreTooShortToMeasure) {
  EXPECT_TRUE(Find(kAll, [](int rank, int64_t) { return rank == 2 ? 0.04 : 0.02; }).empty());
}

TEST(SlowRanks, AreNotThoseThatWereDisturbedForAWhile) {
  EXPECT_TRUE(Find(kAll, [](int rank, int64_t step) { return rank == 2 && step < 88 ? 5.0 : 0.25; }).empty());
}

TEST(SlowRanks, AreNotFoundInAShortRun) {
  const std::map<int, int64_t> last = {{0, 20}, {1, 20}, {2, 20}, {3, 20}};
  EXPECT_TRUE(Find(last, [](int rank, int64_t) { return rank == 2 ? 5.0 : 0.25; }).empty());
}

TEST(SlowRanks, AreFoundAmongThoseThatRecorded) {
  const std::map<int, int64_t> last = {{0, 40}, {1, 40}, {2, 40}};
  EXPECT_EQ(Find(last, [](int rank, int64_t) { return rank == 2 ? 5.0 : 0.25; }).size(), 1u);
  EXPECT_TRUE(Find({{0, 40}, {2, 40}}, [](int rank, int64_t) { return rank == 2 ? 5.0 : 0.25; }).empty());
  EXPECT_TRUE(Find({}, [](int, int64_t) { return 1.0; }).empty());
}

}  // namespace
}  // namespace planwright
