#include "planner/launch/supervise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace planwright {
namespace {

using namespace std::chrono_literals;

// A guard against a hang, and less than a rank of these tests sleeps: how long it takes is for the bench.
constexpr auto kPatience = 300s;
using ::testing::UnorderedElementsAre;

class SuperviseTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "superviseXXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Command Rank(std::vector<std::string> words) {
    const std::string file = folder_ + "/pid" + std::to_string(ranks_++);
    words.insert(words.begin(), {FAKE_RANK, "pid=" + file});
    return {words, {"PATH=/bin"}};
  }
  Supervision Run(const std::vector<Command>& commands, const SupervisionTimes& times = {}) {
    const auto before = std::chrono::steady_clock::now();
    absl::StatusOr<Supervision> result = Supervise(commands, [&](int child, bool is_error, std::string_view line) {
      lines_.push_back(std::to_string(child) + (is_error ? "! " : ": ") + std::string(line));
    }, times);
    took_ = std::chrono::steady_clock::now() - before;
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *result : Supervision{};
  }
  // A zombie whose parent is gone is for init to reap, at its own pace.
  static bool Lives(int pid) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string id, name, state;
    return bool(stat >> id >> name >> state) && state != "Z";
  }
  // Every process that wrote a pid file is gone, and none of ours is left as a zombie.
  void ExpectAllGone() {
    int files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      int pid = 0;
      std::ifstream(entry.path()) >> pid;
      ASSERT_GT(pid, 1) << entry.path();
      for (int i = 0; i < 100 && Lives(pid); ++i) std::this_thread::sleep_for(10ms);
      EXPECT_FALSE(Lives(pid)) << entry.path();
      ++files;
    }
    EXPECT_GE(files, ranks_);
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  }

  std::string folder_;
  int ranks_ = 0;
  std::vector<std::string> lines_;
  std::chrono::nanoseconds took_{};
};

TEST_F(SuperviseTest, AllEndWell) {
  const Supervision result = Run({Rank({"say=hello"}), Rank({"err=warning", "pause=100"})});
  EXPECT_FALSE(result.cause.has_value());
  EXPECT_EQ(result.ends.size(), 2u);
  EXPECT_THAT(lines_, UnorderedElementsAre("0: hello", "1! warning"));
}

// A child whose pipes close a moment before it can be waited for must not be missed: this hung once in some hundred launches.
TEST_F(SuperviseTest, ManyShortRunsAllEnd) {
  for (int i = 0; i < 200; ++i) {
    const Supervision result = Run({Rank({}), Rank({}), Rank({}), Rank({})});
    ASSERT_EQ(result.ends.size(), 4u);
  }
}

TEST_F(SuperviseTest, ARankKilledBySignalEndsTheOthers) {
  const Supervision result = Run({Rank({"sleep"}), Rank({"pause=100", "kill=9"}), Rank({"sleep"})});
  ASSERT_TRUE(result.cause.has_value());
  EXPECT_EQ(result.cause->child, 1);
  EXPECT_EQ(result.cause->signal, SIGKILL);
  EXPECT_LT(took_, kPatience);
  ExpectAllGone();
}

TEST_F(SuperviseTest, ARankThatIgnoresSigtermIsEnded) {
  const Supervision result =
      Run({Rank({"ignore_term", "child=" + folder_ + "/grandchild", "sleep"}), Rank({"pause=200", "exit=3"})});
  ASSERT_TRUE(result.cause.has_value());
  EXPECT_EQ(result.cause->child, 1);
  EXPECT_EQ(result.cause->exit_status, 3);
  EXPECT_LT(took_, kPatience);
  EXPECT_GT(took_, 1s) << "it did not ignore SIGTERM: the test shows nothing";
  ExpectAllGone();
}

TEST_F(SuperviseTest, AStoppedRankIsEnded) {
  const Supervision result = Run({Rank({"kill=19"}), Rank({"pause=100", "exit=12"})});
  EXPECT_EQ(result.cause->child, 1);
  EXPECT_EQ(result.stopped, 0);
  EXPECT_LT(took_, kPatience);
  ExpectAllGone();
}

TEST_F(SuperviseTest, ARankThatStaysStoppedEndsAll) {
  const Supervision result = Run({Rank({"sleep"}), Rank({"kill=19"})}, {.stopped = 500ms});
  EXPECT_FALSE(result.cause.has_value());
  EXPECT_EQ(result.stopped, 1);
  EXPECT_GE(took_, 500ms);
  EXPECT_LT(took_, kPatience);
  ExpectAllGone();
}

TEST_F(SuperviseTest, AStoppedRankThatGoesOnIsNoFailure) {
  const std::string file = folder_ + "/pid0";
  std::thread waker([&] {
    int pid = 0;
    for (std::string state; state != "T";) {
      std::this_thread::sleep_for(5ms);
      if (pid == 0) std::ifstream(file) >> pid;
      std::string id, name;
      std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
      stat >> id >> name >> state;
    }
    kill(pid, SIGCONT);
  });
  const Supervision result = Run({Rank({"stop", "say=on"})});
  waker.join();
  EXPECT_FALSE(result.stopped.has_value());
  EXPECT_FALSE(result.cause.has_value());
  EXPECT_EQ(lines_, std::vector<std::string>{"0: on"});
}

TEST_F(SuperviseTest, TheCauseIsNotTheFollowerThatEndedFirst) {
  const Supervision result = Run({Rank({"exit=10"}), Rank({"pause=150", "kill=11"}), Rank({"exit=10"})});
  EXPECT_EQ(result.ends.front().exit_status, 10);
  EXPECT_EQ(result.cause->child, 1);
  EXPECT_EQ(result.cause->signal, SIGSEGV);
}

TEST_F(SuperviseTest, ACauseThatEndsOnlyAfterSigtermIsStillFound) {
  const Supervision result = Run({Rank({"exit=10"}), Rank({"ignore_term", "pause=600", "exit=70"})});
  EXPECT_EQ(result.cause->child, 1);
  EXPECT_EQ(result.cause->exit_status, 70);
}

TEST_F(SuperviseTest, WithOnlyFollowersTheFirstIsTheCause) {
  const Supervision result = Run({Rank({"sleep"}), Rank({"exit=10"})});
  EXPECT_EQ(result.cause->child, 1);
}

TEST_F(SuperviseTest, AnInterruptIsPassedOnAndIsNoFailure) {
  std::thread interrupt([main = pthread_self()] {
    std::this_thread::sleep_for(300ms);
    pthread_kill(main, SIGTERM);
  });
  const Supervision result = Run({Rank({"sleep"}), Rank({"ignore_term", "sleep"})});
  interrupt.join();
  EXPECT_EQ(result.interrupted_by, SIGTERM);
  EXPECT_FALSE(result.cause.has_value());
  EXPECT_LT(took_, kPatience);
  ExpectAllGone();
}

TEST_F(SuperviseTest, AProgramThatCannotRunLeavesNobodyBehind) {
  absl::StatusOr<Supervision> result =
      Supervise({Rank({"pause=50", "sleep"}), {{folder_ + "/missing"}, {}}}, [](int, bool, std::string_view) {});
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(std::string(result.status().message()), ::testing::HasSubstr("missing: No such file"));
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

TEST_F(SuperviseTest, RanksDieWithTheirLauncher) {
  const Command rank = Rank({"sleep"});
  const int launcher = fork();
  if (launcher == 0) {
    (void)Supervise({rank}, [](int, bool, std::string_view) {});
    _exit(0);
  }
  const std::string file = folder_ + "/pid0";
  for (int i = 0; i < 200 && (!std::filesystem::exists(file) || std::filesystem::file_size(file) == 0); ++i) {
    std::this_thread::sleep_for(10ms);
  }
  kill(launcher, SIGKILL);
  waitpid(launcher, nullptr, 0);
  ExpectAllGone();
}

}  // namespace
}  // namespace planwright
