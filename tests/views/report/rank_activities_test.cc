// Ranks at the same instruction are one line, and the one that the others wait for is named.
#include "planner/views/report/rank_activities.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/views/report/reports.h"

namespace planwright {
namespace {

using testing::At;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using What = RankActivity::What;

RankReport RankAt(int rank, RecorderState state, const std::string& text, double since) {
  RecordedInstruction at;
  at.number = 3;
  at.state = state;
  at.wall = static_cast<int64_t>((testing::kBegin + since) * 1e9);
  at.path = "step 2";
  at.text = text;
  RankPosition position;
  position.state = state;
  position.begun = 3, position.done = 2;
  position.last = position.undone = at;
  return {rank, position};
}

TEST(FoldRanks, JoinsRanksAtOneInstruction) {
  std::vector<RankReport> ranks;
  for (int rank : {0, 1, 2, 4}) ranks.push_back(RankAt(rank, RecorderState::kWaiting, "all_reduce loss", rank));
  ranks.push_back(RankAt(3, RecorderState::kRunning, "linear x", 1));
  ranks.push_back({5, std::nullopt});
  const std::vector<RankActivity> activities = FoldRanks(ranks, At(10));
  ASSERT_EQ(activities.size(), 3U);
  EXPECT_EQ(activities[0].what, What::kComputes);
  EXPECT_EQ(activities[0].where, "step 2 > linear x");
  EXPECT_THAT(activities[0].ranks, ElementsAre(3));
  EXPECT_EQ(activities[1].what, What::kWaits);
  EXPECT_THAT(activities[1].ranks, ElementsAre(0, 1, 2, 4));
  EXPECT_NEAR(activities[1].least.value(), 6, 1e-6);
  EXPECT_NEAR(activities[1].most.value(), 10, 1e-6);
  EXPECT_EQ(activities[2].what, What::kSilent);
  EXPECT_THAT(activities[2].ranks, ElementsAre(5));
  EXPECT_THAT(FoldRanks({}, At(0)), IsEmpty());
}

TEST(FoldRanks, KnowsEachState) {
  RankReport failed = RankAt(0, RecorderState::kRunning, "linear x", 0), done = failed, between = failed,
             starts = failed, behind = failed;
  failed.position->state = RecorderState::kFailed;
  failed.position->message = "cannot write";
  done.position->state = RecorderState::kDone;
  between.position->done = 3;
  starts.position->begun = starts.position->done = 0;
  behind.position->undone.reset();
  const RankReport stores = RankAt(0, RecorderState::kStoring, "save_state", 0);
  const auto only = [](const RankReport& rank) { return FoldRanks({rank}, At(0)).at(0); };
  EXPECT_EQ(only(failed).what, What::kFailed);
  EXPECT_EQ(only(stores).what, What::kStores);
  EXPECT_EQ(only(failed).where, "cannot write");
  EXPECT_EQ(only(done).what, What::kDone);
  EXPECT_EQ(only(between).what, What::kBetween);
  EXPECT_EQ(only(starts).what, What::kStarting);
  EXPECT_EQ(only(behind).what, What::kUnknown);
}

TEST(FindSlowest, IsTheOneThatComputesLongest) {
  const std::vector<RankReport> ranks = {RankAt(0, RecorderState::kWaiting, "all_reduce", 1),
                                         RankAt(1, RecorderState::kRunning, "linear", 4),
                                         RankAt(2, RecorderState::kRunning, "linear", 2)};
  const std::optional<SlowestRank> slowest = FindSlowest(ranks, At(10));
  ASSERT_TRUE(slowest.has_value());
  EXPECT_EQ(slowest->rank, 2);
  EXPECT_NEAR(slowest->seconds, 8, 1e-6);
  EXPECT_EQ(slowest->waiting, 1);
  EXPECT_FALSE(FindSlowest({ranks[0]}, At(10)).has_value()) << "all wait";
  EXPECT_FALSE(FindSlowest({ranks[1]}, At(10)).has_value()) << "none waits";
}

}  // namespace
}  // namespace planwright
