#include "planner/run/outcome/cause.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "planner/base/files/exit_status.h"
#include "planner/run/outcome/outcome_text.h"

namespace planwright {
namespace {

Plan FourRanks() {
  Plan plan;
  plan.world_size = 4;
  plan.origins = {{"vlm.yaml", 12, 5, "module language"}};
  return plan;
}

// A rank that began instruction 6 and nothing after it.
RankPosition At(RecorderState state, int64_t monotonic) {
  RecordedInstruction at{.number = 6,
                         .state = state,
                         .monotonic = monotonic,
                         .origin = 0,
                         .path = "step 4 > language.layers.1",
                         .text = "all_reduce x -> y over language.tp"};
  RecordedInstruction before{.number = 5, .path = "step 4 > language.layers.0", .text = "linear w -> x"};
  return {.state = state, .begun = 6, .done = 5, .host = "node3", .last = at, .undone = at, .finished = before};
}

std::optional<RankPosition> NoRecorder(int) { return std::nullopt; }

Supervision FailedWith(ProcessEnd end) { return {.ends = {end}, .cause = end}; }

TEST(Outcome, OfARunThatEndedWell) {
  const Outcome outcome = CauseOf(FourRanks(), {.ends = {{0}, {1}}}, NoRecorder);
  EXPECT_EQ(OutcomeJson(outcome), nlohmann::ordered_json({{"exit_code", 0}, {"cause", "done"}}));
}

TEST(Outcome, OfAKilledRankNamesRankHostInstructionAndRecipeLine) {
  const Outcome outcome =
      CauseOf(FourRanks(), FailedWith({2, 0, SIGKILL}), [](int) { return At(RecorderState::kWaiting, 5); });
  const nlohmann::ordered_json json = OutcomeJson(outcome);
  EXPECT_EQ(json["exit_code"], kExitPeerLost);
  EXPECT_EQ(json["cause"], "rank 2 was killed by SIGKILL");
  EXPECT_EQ(json["rank"], 2);
  EXPECT_EQ(json["host"], "node3");
  EXPECT_EQ(json["instruction"], "step 4 > language.layers.1 > all_reduce x -> y over language.tp");
  EXPECT_EQ(json["last_done"], "step 4 > language.layers.0 > linear w -> x");
  EXPECT_EQ(json["recipe_line"], "vlm.yaml:12:5");
}

TEST(Outcome, KeepsTheRanksExitStatus) {
  const Outcome outcome = CauseOf(FourRanks(), FailedWith({1, kExitNumerics, 0}), NoRecorder);
  EXPECT_EQ(outcome.exit_code, kExitNumerics);
  EXPECT_EQ(outcome.failure->rank, 1);
  EXPECT_TRUE(OutcomeJson(outcome)["instruction"].is_null());
}

TEST(Outcome, OfAHangNamesTheRankThatTheOthersWaitFor) {
  const Outcome outcome = CauseOf(FourRanks(), FailedWith({0, kExitHang, 0}), [](int rank) {
    return At(rank == 2 || rank == 3 ? RecorderState::kRunning : RecorderState::kWaiting, rank == 0 ? 1 : 50 - rank);
  });
  EXPECT_EQ(outcome.exit_code, kExitHang);
  EXPECT_EQ(outcome.failure->rank, 3);
}

// The host of rank 1 has launched a collective, but its device is still in a product before it. The outcome must name
// the product.
TEST(Outcome, OfAHangNamesWhereTheDeviceIs) {
  const auto source = [](int rank) -> std::optional<RankPosition> {
    RankPosition position = At(RecorderState::kWaiting, 10);
    position.message = rank == 0 ? "no progress for 5 seconds" : "";
    if (rank == 1)
      position.undone->state = RecorderState::kRunning, position.undone->text = "linear v -> w",
      position.undone->monotonic = 20;
    return position;
  };
  const Outcome outcome = CauseOf(FourRanks(), FailedWith({0, kExitHang, 0}), source);
  EXPECT_EQ(outcome.failure->rank, 1);
  EXPECT_EQ(outcome.failure->instruction, "step 4 > language.layers.1 > linear v -> w");
  EXPECT_EQ(outcome.failure->message, "no progress for 5 seconds");
  // A broken device tells less: the failure lies between the last instruction done and the one launched last.
  for (const int status : {kExitDevice, kExitInternal}) {
    const Outcome other = CauseOf(FourRanks(), FailedWith({1, status, 0}), source);
    EXPECT_EQ(other.failure->instruction, "step 4 > language.layers.1 > all_reduce x -> y over language.tp");
    EXPECT_EQ(other.failure->last_done, "step 4 > language.layers.0 > linear w -> x");
  }
}

TEST(Outcome, WhereAllWaitForOthersTheOneThatReportedIsNamedAndWhereTheOthersAre) {
  const auto source = [](int rank) -> std::optional<RankPosition> {
    RankPosition position = At(RecorderState::kWaiting, 10 - rank);
    if (rank == 0) position.undone->text = "all_gather w -> w_full over language.tp";
    if (rank == 3) return std::nullopt;
    return position;
  };
  const Outcome outcome = CauseOf(FourRanks(), FailedWith({2, kExitHang, 0}), source);
  EXPECT_EQ(outcome.cause, "rank 2 waited too long for other ranks");
  EXPECT_EQ(outcome.failure->rank, 2);
  EXPECT_EQ(
      OutcomeJson(outcome)["others"],
      nlohmann::ordered_json({"rank 0 waited in step 4 > language.layers.1 > all_gather w -> w_full over language.tp",
                              "rank 1 waited in step 4 > language.layers.1 > all_reduce x -> y over language.tp",
                              "rank 3 had not begun"}));
}

// Ranks at one instruction are one line, whatever calls it lies in; those that wait come first.
TEST(Outcome, SaysWhatTheOthersWaitedFor) {
  Plan plan = FourRanks();
  plan.world_size = 12;
  const auto source = [](int rank) -> std::optional<RankPosition> {
    RankPosition position = At(rank < 9 ? RecorderState::kWaiting : RecorderState::kRunning, rank);
    position.undone->path = "step 4 > language.layers." + std::to_string(rank);
    if (rank >= 9) position.undone->text = "linear w -> x";
    if (rank == 7) position.undone->path = "step 4 17", position.undone->text = "exchange";
    if (rank == 11) position.done = position.begun;
    return position;
  };
  const Outcome outcome = CauseOf(plan, FailedWith({3, 0, SIGKILL}), source);
  EXPECT_EQ(
      outcome.failure->others,
      (std::vector<std::string>{"ranks 0-2, 4-6, 8 waited in step 4 > all_reduce x -> y over language.tp",
                                "rank 7 waited in step 4 > exchange", "ranks 9, 10 were in step 4 > linear w -> x",
                                "rank 11 was between two instructions"}));
  EXPECT_NE(OutcomeText(outcome).find("\n  rank 7 waited in step 4 > exchange\n"), std::string::npos);
}

// Where the failure came before the first instruction, it says nothing that the others are not far, either.
TEST(Outcome, OfAFailureAtTheStartLeavesTheOthersOut) {
  const auto source = [](int rank) -> std::optional<RankPosition> {
    if (rank == 1) return std::nullopt;
    return At(RecorderState::kWaiting, 1);
  };
  EXPECT_TRUE(CauseOf(FourRanks(), FailedWith({1, kExitUsage, 0}), source).failure->others.empty());
}

TEST(Outcome, OfARankThatTheKernelKilledForMemory) {
  const auto source = [](int) { return At(RecorderState::kRunning, 1); };
  const std::string where = "the cgroup /job (limit 2 GB)";
  const Outcome outcome = CauseOf(FourRanks(), FailedWith({.child = 1, .signal = SIGKILL, .memory = where}), source);
  EXPECT_EQ(outcome.exit_code, kExitHostMemory);
  EXPECT_EQ(outcome.cause, "rank 1 was killed by the kernel: host memory ran out in the cgroup /job (limit 2 GB)");
  EXPECT_EQ(outcome.failure->rank, 1);
  // Another signal, and a rank that failed by itself, are what they are.
  EXPECT_EQ(CauseOf(FourRanks(), FailedWith({.child = 1, .signal = SIGSEGV}), source).exit_code, kExitPeerLost);
  EXPECT_EQ(CauseOf(FourRanks(), FailedWith({.child = 1, .exit_status = kExitStorage}), source).exit_code,
            kExitStorage);
}

TEST(Outcome, OfARankOnANodeThatIsLost) {
  const auto source = [](int) { return At(RecorderState::kWaiting, 1); };
  const ProcessEnd end{.child = 2, .unreachable = "node1 (10.0.0.2): it said nothing for 20 s"};
  const Outcome outcome = CauseOf(FourRanks(), FailedWith(end), source);
  EXPECT_EQ(outcome.exit_code, kExitNodeLost);
  EXPECT_EQ(outcome.cause, "the node of rank 2 is lost: node1 (10.0.0.2): it said nothing for 20 s");
  EXPECT_EQ(outcome.failure->rank, 2);
}

TEST(Outcome, HasWordsForEveryStatusOfARank) {
  for (const ExitStatusRow& row : ExitStatuses()) {
    if (row.number == kExitSuccess || *row.did == '\0') continue;
    const Outcome outcome = CauseOf(FourRanks(), FailedWith({1, row.number, 0}), NoRecorder);
    EXPECT_EQ(outcome.exit_code, row.number);
    EXPECT_EQ(outcome.cause, std::string("rank 1 ") + row.did);
  }
}

TEST(Outcome, OfAStoppedRankNamesThatRank) {
  const auto source = [](int) { return At(RecorderState::kRunning, 1); };
  Supervision supervision = FailedWith({0, kExitHang, 0});
  supervision.stopped = 2;
  for (const bool reported : {true, false}) {
    if (!reported) supervision.cause.reset();
    const Outcome outcome = CauseOf(FourRanks(), supervision, source);
    EXPECT_EQ(outcome.exit_code, kExitStopped);
    EXPECT_EQ(outcome.failure->rank, 2);
    EXPECT_EQ(outcome.cause, "rank 2 is stopped (SIGSTOP)");
  }
  // The failure of another rank is reported as the cause, not the stop.
  supervision = FailedWith({1, kExitNumerics, 0});
  supervision.stopped = 2;
  EXPECT_EQ(CauseOf(FourRanks(), supervision, source).failure->rank, 1);
}

TEST(Outcome, OfAnInterruptDependsOnWhetherACheckpointWasWritten) {
  EXPECT_EQ(CauseOf(FourRanks(), {.ends = {{0, 0, SIGTERM, true}}, .interrupted_by = SIGTERM}, NoRecorder).exit_code,
            128 + SIGTERM);
  EXPECT_EQ(CauseOf(FourRanks(), {.ends = {{0, kExitPreempted}}, .interrupted_by = SIGTERM}, NoRecorder).exit_code,
            kExitPreempted);
  EXPECT_EQ(
      CauseOf(FourRanks(), {.ends = {{0, 0, SIGINT, true}}, .interrupted_by = SIGTERM, .out_of_time = true}, NoRecorder)
          .cause,
      "interrupted by SIGTERM, and not all ranks had saved when the job was about to be killed");
  const auto saved_after = [](int signal) {
    return CauseOf(FourRanks(), {.ends = {{0, kExitPreempted}}, .interrupted_by = signal}, NoRecorder).cause;
  };
  EXPECT_EQ(saved_after(SIGTERM), "preempted by SIGTERM, with a checkpoint written");
  EXPECT_EQ(saved_after(SIGINT), "stopped by Ctrl-C (SIGINT), with a checkpoint written");
  const Supervision stopped = {.ends = {{0, kExitPreempted}}, .interrupted_by = SIGTERM};
  EXPECT_EQ(CauseOf(FourRanks(), stopped, NoRecorder, /*saved=*/false).cause,
            "preempted by SIGTERM, before it had done a step: there was nothing to save");
}

// The request itself ends a rank that starts, and others lose it.
TEST(Outcome, OfAnInterruptWhileRanksStartIsThatTheyMayBeStartedAgain) {
  const Supervision supervision = {.ends = {{0, 0, SIGUSR1, true}, {1, kExitPeerLost}, {2, 0, SIGTERM, true}},
                                   .interrupted_by = SIGTERM};
  const Outcome outcome = CauseOf(FourRanks(), supervision, NoRecorder, /*saved=*/false);
  EXPECT_EQ(outcome.exit_code, kExitPreempted);
  EXPECT_EQ(outcome.cause, "preempted by SIGTERM while it started: there was nothing to save");
  // A person who sends it to a rank is no launcher.
  const Supervision by_hand = {.ends = {{0, 0, SIGUSR1, false}}, .cause = ProcessEnd{0, 0, SIGUSR1}};
  EXPECT_EQ(CauseOf(FourRanks(), by_hand, NoRecorder).exit_code, kExitPeerLost);
}

}  // namespace
}  // namespace planwright
