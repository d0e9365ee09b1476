// Two launches into one run directory. Of two at the same moment one runs. One that was cut off and comes back finds
// that it is replaced: it publishes nothing that anyone loads, and leaves the files of the newer life alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <random>
#include <thread>

#include "planner/base/files/exit_status.h"
#include "tests/end_to_end/checkpoint_run.h"
#include "tests/support/eventually.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

class TwoLives : public CheckpointRun {
 protected:
  // Stops the launcher and then its ranks, as a node that is cut off.
  void CutOff(const Started& launch) {
    kill(launch.pid, SIGSTOP);
    const std::vector<pid_t> processes = ProcessesWith(RunDir());
    for (pid_t pid : processes) kill(pid, SIGSTOP);
    EXPECT_TRUE(Eventually([&] {
      for (pid_t pid : processes) {
        if (ReadAll("/proc/" + std::to_string(pid) + "/status").find("State:\tT") == std::string::npos) return false;
      }
      return true;
    }));
    fs::remove(RunDir() + "/lock");  // another node does not see this lock, and makes its own
  }

  // Life 1 is cut off when `ready` returns, comes back while life 2 runs, and finds itself replaced. It goes no further
  // than into step `last`, however late it is cut off.
  void ExpectReplaced(int last, const std::function<void()>& ready) {
    const Started old = BeginPaused(kSteps, {.rank = 1, .list = "step", .step = last});
    ready();
    CutOff(old);
    const size_t before = Curve().size();
    ASSERT_LT(before, static_cast<size_t>(last));
    const Started fresh = Begin(kSteps);
    ASSERT_TRUE(Eventually([&] { return fs::exists(RunDir() + "/lives/2/start.json"); }));
    ASSERT_TRUE(Eventually([&] { return !CheckpointNames().empty() && CheckpointNames().back().ends_with("life-2"); }));
    const auto published = [&] {
      std::vector<std::string> names;
      for (const std::string& name : CheckpointNames()) {
        if (name.ends_with("life-1") && fs::exists(Checkpoints() + "/" + name + "/manifest.json"))
          names.push_back(name);
      }
      return names;
    };
    const Ended replaced = GoOn(old);
    EXPECT_EQ(replaced.status, kExitReplaced) << replaced.output;
    EXPECT_THAT(replaced.output, HasSubstr("a newer life of this run has begun"));
    const Ended ended = End(fresh);
    ASSERT_EQ(ended.status, 0) << ended.output;
    EXPECT_TRUE(ProcessesWith(RunDir()).empty());
    ExpectCurve(kSteps);
    EXPECT_EQ(Outcome().at("exit_code"), 0);
    const std::string launch_log = ReadAll(RunDir() + "/logs/launch.log");
    std::string logs = launch_log;
    for (const char* name : {"rank0000.log", "rank0001.log", "rank0000.out", "rank0001.out"})
      logs += ReadAll(RunDir() + "/logs/" + name);
    EXPECT_THAT(logs, HasSubstr(", life 2"));
    EXPECT_THAT(logs, AllOf(Not(HasSubstr("a newer life of this run has begun")), Not(HasSubstr(", life 1"))));
    EXPECT_THAT(launch_log, HasSubstr("exit code 0"));
    // What life 1 may have published in between is loaded by nobody.
    const Ended listed = Plan({"checkpoint", "ls", RunDir(), "--json"});
    const auto list = nlohmann::json::parse(listed.output, nullptr, false);
    const auto start = nlohmann::json::parse(ReadAll(RunDir() + "/lives/2/start.json"));
    for (const auto& checkpoint : list.at("checkpoints")) {
      const bool late = checkpoint.at("life") == 1 && checkpoint.at("step") > start.at("from_step");
      EXPECT_FALSE(late && checkpoint.at("state") == "usable") << checkpoint;
    }
    for (const std::string& name : published()) EXPECT_LE(name, CheckpointNameOf(before)) << "of a step after the cut";
    EXPECT_EQ(Plan({"checkpoint", "verify", RunDir(), "--all"}).status, 0);
  }

  // The largest name that life 1 may have published: the save of its last step was perhaps under way.
  static std::string CheckpointNameOf(size_t step) {
    char name[64];
    std::snprintf(name, sizeof name, "step-%08zu.life-1", step);
    return name;
  }

  // Two launches at the same moment: one runs, and the other names its process.
  void ExpectOneOfTwo(int round) {
    SCOPED_TRACE("round " + std::to_string(round));
    // The one that runs is there until it is told to end.
    const KillPoint pause = {.rank = 1, .list = "step", .step = 6};
    const Started both[2] = {BeginPaused(kSteps, pause), BeginPaused(kSteps, pause)};
    std::optional<int> status[2];
    ASSERT_TRUE(Eventually([&] {
      for (int i : {0, 1}) {
        if (status[i] = WaitFor(both[i].pid, 0ms); status[i]) return true;
      }
      return false;
    }));
    const int loser = status[0] ? 0 : 1;
    EXPECT_EQ(*status[loser], kExitUsage) << ReadAll(both[loser].output);
    EXPECT_THAT(ReadAll(both[loser].output), HasSubstr("another `plan launch` still runs in it (process " +
                                                       std::to_string(both[1 - loser].pid) + " on "));
    WaitForPause(1);
    kill(both[1 - loser].pid, SIGTERM);
    const Ended winner = End(both[1 - loser]);
    EXPECT_EQ(winner.status, kExitPreempted) << winner.output;
    ExpectCurve(Curve().size());
    fs::remove_all(RunDir());
  }
};

TEST_F(TwoLives, OneThatComesBackAfterSteps) {
  ExpectReplaced(6, [&] { WaitForPause(1); });
}

// So early that it has no checkpoint: life 2 begins afresh, too.
TEST_F(TwoLives, OneThatComesBackBeforeItsFirstCheckpoint) {
  ExpectReplaced(2, [&] { WaitForPause(1); });
}

TEST_F(TwoLives, AtTheSameMomentOneRuns) {
  for (int round = 0; round < 4; ++round) ExpectOneOfTwo(round);
}

TEST_F(TwoLives, SoakAtTheSameMomentOneRuns) {
  for (int round = 0; round < 20; ++round) ExpectOneOfTwo(round);
}

// At moments drawn with a seed, from the start of the ranks on.
TEST_F(TwoLives, SoakOneThatComesBack) {
  std::mt19937 random(77);
  for (int round = 0; round < 20; ++round) {
    const auto moment = std::chrono::milliseconds(random() % 600);
    SCOPED_TRACE("round " + std::to_string(round) + ", after " + std::to_string(moment.count()) + " ms");
    ExpectReplaced(kSteps - 8, [&] {
      WaitForRanks();
      std::this_thread::sleep_for(moment);
    });
    fs::remove_all(RunDir());
  }
}

}  // namespace
}  // namespace planwright::testing
