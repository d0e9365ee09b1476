#include "planner/launch/outcome.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "planner/cli/exit_status.h"

namespace planwright {
namespace {

Plan FourRanks() {
  Plan plan;
  plan.world_size = 4;
  plan.origins = {{"vlm.yaml", 12, 5, "module language"}};
  return plan;
}

RankPosition At(RecorderState state, int64_t monotonic) {
  RankPosition position;
  position.state = state;
  position.monotonic = monotonic;
  position.origin = 0;
  position.host = "node3";
  position.path = "step 4 > language.layers.1";
  position.instruction = "all_reduce x -> y over language.tp";
  return position;
}

std::optional<RankPosition> NoRecorder(int) { return std::nullopt; }

Supervision FailedWith(ProcessEnd end) { return {{end}, end, 0}; }

TEST(Outcome, OfARunThatEndedWell) {
  const Outcome outcome = OutcomeOf(FourRanks(), {{{0}, {1}}, std::nullopt, 0}, NoRecorder);
  EXPECT_EQ(OutcomeJson(outcome), nlohmann::ordered_json({{"exit_code", 0}, {"cause", "done"}}));
}

TEST(Outcome, OfAKilledRankNamesRankHostInstructionAndRecipeLine) {
  const Outcome outcome = OutcomeOf(FourRanks(), FailedWith({2, 0, SIGKILL}),
                                    [](int) { return At(RecorderState::kWaiting, 5); });
  const nlohmann::ordered_json json = OutcomeJson(outcome);
  EXPECT_EQ(json["exit_code"], kExitPeerLost);
  EXPECT_EQ(json["cause"], "rank 2 was killed by SIGKILL");
  EXPECT_EQ(json["rank"], 2);
  EXPECT_EQ(json["host"], "node3");
  EXPECT_EQ(json["instruction"], "step 4 > language.layers.1 > all_reduce x -> y over language.tp");
  EXPECT_EQ(json["recipe_line"], "vlm.yaml:12:5");
}

TEST(Outcome, KeepsTheRanksExitStatus) {
  const Outcome outcome = OutcomeOf(FourRanks(), FailedWith({1, kExitNumerics, 0}), NoRecorder);
  EXPECT_EQ(outcome.exit_code, kExitNumerics);
  EXPECT_EQ(outcome.failure->rank, 1);
  EXPECT_TRUE(OutcomeJson(outcome)["instruction"].is_null());
}

TEST(Outcome, OfAHangNamesTheRankThatTheOthersWaitFor) {
  const Outcome outcome = OutcomeOf(FourRanks(), FailedWith({0, kExitHang, 0}), [](int rank) {
    return At(rank == 2 || rank == 3 ? RecorderState::kRunning : RecorderState::kWaiting, rank == 0 ? 1 : 50 - rank);
  });
  EXPECT_EQ(outcome.exit_code, kExitHang);
  EXPECT_EQ(outcome.failure->rank, 3);
}

TEST(Outcome, OfAnInterruptDependsOnWhetherACheckpointWasWritten) {
  EXPECT_EQ(OutcomeOf(FourRanks(), {{{0, 0, SIGTERM, true}}, std::nullopt, SIGTERM}, NoRecorder).exit_code, 128 + SIGTERM);
  EXPECT_EQ(OutcomeOf(FourRanks(), {{{0, kExitPreempted}}, std::nullopt, SIGTERM}, NoRecorder).exit_code, kExitPreempted);
}

}  // namespace
}  // namespace planwright
