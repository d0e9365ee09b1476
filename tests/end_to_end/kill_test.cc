// A rank is killed at any moment: the launcher names it (rank, host, instruction), and all processes are gone long
// before a time-out.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "planner/base/files/exit_status.h"
#include "tests/end_to_end/processes.h"
#include "tests/support/eventually.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

const std::string kBin = InBuild("bin/");
constexpr int kRanks = 4;

class KillTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "planwright_kill_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  // The tiny model on tp2 + tp2: every rank is in a tp group, and in the groups of the bridge and of all ranks.
  Started LaunchTiny() {
    return StartProgram({std::string(kBin) + "plan", "launch", InSource("recipes/nemotron_moe_vlm_tiny.yaml"),
                         "modules.radio_encoder.placement.ranks=2", "modules.radio_encoder.parallel.tp=2",
                         "modules.language.placement.first_rank=2", "modules.language.placement.ranks=2",
                         "modules.language.parallel.tp=2", "budget.train_samples=80000",
                         "budget.learning_rate.decay_samples=80000", "--local", "--yes", "--run-dir", RunDir()},
                        {}, folder_ + "/output");
  }

  std::string RunDir() const { return folder_ + "/run"; }

  // The process of a rank, as the launcher's log names it; -1: it did not start in time.
  pid_t PidOf(int rank) {
    const std::string says = "  rank " + std::to_string(rank) + " started as process ";
    pid_t found = -1;
    Eventually([&] {
      const std::string log = ReadAll(RunDir() + "/logs/launch.log");
      const size_t at = log.find(says), end = at == std::string::npos ? at : log.find('\n', at);
      if (end != std::string::npos) found = std::stoi(log.substr(at + says.size()));
      return found >= 0;
    });
    return found;
  }

  void WaitForSteps(size_t steps) {
    const bool came = Eventually([&] {
      const std::string metrics = ReadAll(RunDir() + "/metrics.jsonl");
      return static_cast<size_t>(std::count(metrics.begin(), metrics.end(), '\n')) >= steps;
    });
    ASSERT_TRUE(came) << "no step " << steps << ": " << ReadAll(folder_ + "/output");
  }

  void KillAndExpect(const Started& launch, int rank, bool in_step) {
    const pid_t victim = PidOf(rank);
    ASSERT_GT(victim, 0);
    kill(victim, SIGKILL);
    const std::optional<int> status = WaitFor(launch.pid, kPatience);
    ASSERT_TRUE(status.has_value()) << "the launcher is still there";
    EXPECT_TRUE(Eventually([&] { return ProcessesWith(RunDir()).empty(); }));
    EXPECT_EQ(*status, kExitPeerLost);
    const auto outcome = nlohmann::json::parse(ReadAll(RunDir() + "/outcome.json"));
    EXPECT_EQ(outcome.at("rank"), rank) << outcome;
    char host[256] = {};
    gethostname(host, sizeof host - 1);
    EXPECT_EQ(outcome.at("host"), host);
    if (in_step) {
      EXPECT_TRUE(outcome.at("instruction").is_string()) << outcome;
      EXPECT_TRUE(outcome.at("recipe_line").is_string()) << outcome;
    }
    EXPECT_NE(ReadAll(folder_ + "/output").find("rank " + std::to_string(rank) + " was killed by SIGKILL"),
              std::string::npos);
  }

  std::string folder_;
};

TEST_F(KillTest, EachRankInTheMiddleOfTraining) {
  for (int rank = 0; rank < kRanks; ++rank) {
    fs::remove_all(RunDir());
    const Started launch = LaunchTiny();
    WaitForSteps(2 + rank);
    std::this_thread::sleep_for(rank * 7ms);  // at another place of the step each time
    KillAndExpect(launch, rank, true);
  }
}

TEST_F(KillTest, ARankThatHasJustStarted) {
  for (int rank : {0, 3}) {
    fs::remove_all(RunDir());
    const Started launch = LaunchTiny();
    KillAndExpect(launch, rank, false);
  }
}

TEST_F(KillTest, AnInterruptEndsEverything) {
  const Started launch = LaunchTiny();
  WaitForSteps(1);
  kill(launch.pid, SIGINT);
  const std::optional<int> status = WaitFor(launch.pid, kPatience);
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(*status, 128 + SIGINT);
  EXPECT_TRUE(ProcessesWith(RunDir()).empty());
}

// The same at many moments, drawn with a seed, so that a failure can be repeated.
TEST_F(KillTest, SoakAnyRankAtAnyMoment) {
  std::mt19937 random(1234);
  for (int round = 0; round < 60; ++round) {
    const int rank = static_cast<int>(random() % kRanks);
    const auto moment = std::chrono::milliseconds(random() % 400);
    SCOPED_TRACE("round " + std::to_string(round) + ", rank " + std::to_string(rank) + " after " +
                 std::to_string(moment.count()) + " ms");
    fs::remove_all(RunDir());
    const Started launch = LaunchTiny();
    WaitForSteps(1);
    std::this_thread::sleep_for(moment);
    KillAndExpect(launch, rank, true);
  }
}

// Two ranks of one job, one of them with a plan of another learning rate.
TEST_F(KillTest, ARankWithAnotherPlanIsRefusedByName) {
  const std::string recipe = InSource("recipes/nemotron_moe_vlm_tiny.yaml");
  for (const char* peak : {"3.0e-3", "1.0e-3"}) {
    const Started compile =
        StartProgram({std::string(kBin) + "plan", "compile", recipe, "modules.language.placement.first_rank=1",
                      std::string("budget.learning_rate.peak=") + peak, "-o", folder_ + "/" + peak + ".json"},
                     {}, folder_ + "/compile");
    ASSERT_EQ(WaitFor(compile.pid, kPatience), 0) << ReadAll(compile.output);
  }
  fs::create_directories(RunDir());
  std::vector<Started> ranks;
  for (int rank : {0, 1}) {
    ranks.push_back(StartProgram(
        {std::string(kBin) + "executor", "--plan", folder_ + (rank == 0 ? "/3.0e-3.json" : "/1.0e-3.json"), "--run-dir",
         RunDir()},
        {"RANK=" + std::to_string(rank), "WORLD_SIZE=2", "LOCAL_RANK=" + std::to_string(rank), "LOCAL_WORLD_SIZE=2",
         "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + std::to_string(20000 + getpid() % 20000), "PLANWRIGHT_NONCE=one"},
        folder_ + "/rank" + std::to_string(rank)));
  }
  for (const Started& rank : ranks) {
    EXPECT_EQ(WaitFor(rank.pid, kPatience), kExitPlanMismatch);
    EXPECT_NE(ReadAll(rank.output).find("rank 1"), std::string::npos) << ReadAll(rank.output);
  }
}

}  // namespace
}  // namespace planwright::testing
