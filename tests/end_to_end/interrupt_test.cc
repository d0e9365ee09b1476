// Signals to the launcher of a run that keeps checkpoints, at any moment: the run stops after a step with a checkpoint
// of it, and the next launch goes on as if nothing had been.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <random>
#include <thread>

#include "planner/base/files/exit_status.h"
#include "tests/end_to_end/checkpoint_run.h"
#include "tests/support/eventually.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using ::testing::AnyOf;
using ::testing::HasSubstr;

class Interrupt : public CheckpointRun {
 protected:
  // Where in the life the signal comes.
  enum class Moment { kSetup, kStep, kSave };

  static constexpr int kMostSteps = 6;  // of a life

  // Launches once more, interrupts, and checks the end. `delay`: from the moment to the signal. However late the signal
  // comes, the life has not ended by itself.
  void InterruptOnce(Moment moment, int number, std::chrono::milliseconds delay) {
    const size_t before = Curve().size();
    ASSERT_LT(before + kMostSteps, static_cast<size_t>(kSteps));
    std::vector<std::string> known = CheckpointNames();
    const Started launch =
        BeginPaused(kSteps, {.rank = 1, .list = "step", .step = static_cast<int>(before) + kMostSteps});
    if (moment == Moment::kSetup) WaitForRanks();
    if (moment == Moment::kStep) WaitForSteps(before + 1);
    if (moment == Moment::kSave) WaitForNewCheckpoint(known);
    std::this_thread::sleep_for(delay);
    kill(launch.pid, number);
    const Ended ended = GoOn(launch);
    ASSERT_EQ(ended.status, kExitPreempted) << ended.output;
    EXPECT_TRUE(ProcessesWith(RunDir()).empty());
    EXPECT_THAT(ended.output, HasSubstr("interrupted: ranks finish their step, save a checkpoint and end; a second"));
    EXPECT_EQ(Outcome().at("exit_code"), kExitPreempted);
    const size_t steps = Curve().size();
    if (moment == Moment::kSetup && steps == before) {  // it was still starting: it does not wait for a step
      EXPECT_THAT(ended.output, HasSubstr("while it started: there was nothing to save"));
      return;
    }
    EXPECT_GT(steps, before) << "each life that has begun does a step";
    EXPECT_THAT(ended.output, HasSubstr("checkpoint of step " + std::to_string(steps) + ":"));
    EXPECT_THAT(ended.output, HasSubstr("with a checkpoint written"));
    ExpectCurve(steps);
  }
};

TEST_F(Interrupt, InSetupStepsAndSavesOfManyLives) {
  InterruptOnce(Moment::kSetup, SIGTERM, 0ms);
  InterruptOnce(Moment::kSetup, SIGINT, 150ms);  // from here on setup loads a checkpoint
  InterruptOnce(Moment::kSetup, SIGTERM, 300ms);
  InterruptOnce(Moment::kStep, SIGINT, 10ms);
  InterruptOnce(Moment::kSave, SIGTERM, 0ms);
  InterruptOnce(Moment::kSave, SIGINT, 5ms);
  const Ended last = Run(kSteps);
  EXPECT_EQ(last.status, 0) << last.output;
  ExpectCurve(kSteps);
}

// As a batch system ends a job: every process of it gets the signal.
TEST_F(Interrupt, ASignalToLauncherAndRanksIsOneRequestToSave) {
  const Started launch = BeginPaused(kSteps, {.rank = 1, .list = "step", .step = 4});
  WaitForPause(1);
  for (pid_t pid : ProcessesWith(RunDir())) kill(pid, SIGTERM);
  const Ended ended = End(launch);
  ASSERT_EQ(ended.status, kExitPreempted) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("with a checkpoint written"));
  EXPECT_TRUE(ProcessesWith(RunDir()).empty());
  const Ended last = Run(kSteps);
  EXPECT_EQ(last.status, 0) << last.output;
  ExpectCurve(kSteps);
}

TEST_F(Interrupt, ASecondSignalEndsItAtOnce) {
  const Started launch = BeginPaused(kSteps, {.rank = 1, .list = "step", .step = 4});
  WaitForPause(1);
  kill(launch.pid, SIGTERM);
  // Stopped ranks cannot save. They would be given the time of a hang for it.
  std::vector<pid_t> ranks;
  for (pid_t pid : ProcessesWith(RunDir())) {
    if (pid == launch.pid) continue;
    kill(pid, SIGSTOP);
    ranks.push_back(pid);
  }
  kill(launch.pid, SIGINT);
  const std::optional<int> status = WaitFor(launch.pid, 60s);
  ASSERT_TRUE(status.has_value()) << "the launcher is still there";
  // The launcher may see both at once, in any order, or the ranks were done with saving.
  EXPECT_THAT(*status, AnyOf(128 + SIGTERM, 128 + SIGINT, static_cast<int>(kExitPreempted)));
  EXPECT_TRUE(ProcessesWith(RunDir()).empty());
  const Ended last = Run(kSteps);
  EXPECT_EQ(last.status, 0) << last.output;
  ExpectCurve(kSteps);
}

TEST_F(Interrupt, WithoutCheckpointsNothingIsSaved) {
  for (int number : {SIGTERM, SIGINT}) {
    const Started launch =
        StartProgram({InBuild("bin/plan"), "launch", Recipe(), "modules.language.placement.first_rank=1",
                      "budget.train_samples=320000", "budget.learning_rate.decay_samples=320000", "lints={PW0111: off}",
                      "--local", "--yes", "--run-dir", RunDir()},
                     {}, Folder() + "/plain");
    WaitForSteps(1);
    kill(launch.pid, number);
    EXPECT_EQ(End(launch).status, 128 + number);
    EXPECT_TRUE(ProcessesWith(RunDir()).empty());
    EXPECT_FALSE(fs::exists(Checkpoints()));
    fs::remove_all(RunDir());
  }
}

// As supervisors, shells and libraries leave it to what they start: no ends of children are kept, the signal that asks
// to end is blocked, and standard input is closed.
TEST_F(Interrupt, WhateverWasInherited) {
  const std::string words = Recipe() + " modules.language.placement.first_rank=1 checkpoint.every_steps=2" +
                            " 'lints={PW0111: off}' budget.train_samples=320000" +
                            " budget.learning_rate.decay_samples=320000 --local --yes --run-dir " + RunDir();
  const Started launch = StartProgram({"/bin/bash", "-c",
                                       "exec env --ignore-signal=CHLD --block-signal=CHLD,TERM,USR1,PIPE,ALRM " +
                                           InBuild("bin/plan") + " launch " + words + " <&-"},
                                      {}, Folder() + "/inherited");
  WaitForSteps(3);
  kill(launch.pid, SIGTERM);
  EXPECT_EQ(End(launch).status, kExitPreempted) << ReadAll(launch.output);
  EXPECT_TRUE(ProcessesWith(RunDir()).empty());
  EXPECT_EQ(Outcome().at("exit_code"), kExitPreempted);
}

// A pager that is not scrolled, a terminal that is stopped: neither the run nor its end waits for it.
TEST_F(Interrupt, ThoughNobodyReadsWhatItPrints) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);
  while (write(ends[1], "x", 1) == 1) {
  }
  fcntl(ends[1], F_SETFL, fcntl(ends[1], F_GETFL) & ~O_NONBLOCK);
  const std::string words = Recipe() + " checkpoint.every_steps=2 'lints={PW0111: off}' budget.train_samples=320000" +
                            " budget.learning_rate.decay_samples=320000 --local --yes --run-dir " + RunDir();
  const std::string unread = ">&" + std::to_string(ends[1]);
  for (const std::string& streams : {unread, unread + " 2" + unread}) {
    const size_t before = Curve().size();
    const Started launch =
        StartProgram({"/bin/bash", "-c", "exec " + InBuild("bin/plan") + " launch " + words + " " + streams}, {},
                     Folder() + "/unread");
    WaitForSteps(before + 3);
    kill(launch.pid, SIGTERM);
    EXPECT_EQ(End(launch).status, kExitPreempted) << ReadAll(launch.output);
    EXPECT_TRUE(ProcessesWith(RunDir()).empty());
    EXPECT_EQ(Outcome().at("exit_code"), kExitPreempted);
  }
  close(ends[0]);
  close(ends[1]);
}

// Many lives of some runs, at moments drawn with a seed.
TEST_F(Interrupt, SoakAtAnyMoment) {
  std::mt19937 random(4321);
  for (int run = 0; run < 8; ++run) {
    for (int life = 1; Curve().size() < kSteps - 10; ++life) {
      const auto moment = static_cast<Moment>(random() % 3);
      const int number = random() % 2 == 0 ? SIGTERM : SIGINT;
      const auto delay = std::chrono::milliseconds(random() % (moment == Moment::kSetup ? 500 : 60));
      SCOPED_TRACE("run " + std::to_string(run) + ", life " + std::to_string(life));
      InterruptOnce(moment, number, delay);
      if (HasFatalFailure()) return;
    }
    const Ended last = Run(kSteps);
    EXPECT_EQ(last.status, 0) << last.output;
    ExpectCurve(kSteps);
    fs::remove_all(RunDir());
  }
}

}  // namespace
}  // namespace planwright::testing
