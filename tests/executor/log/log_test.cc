// The log of a rank. Each test is a process of its own, as a rank is.
#include "executor/log/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

namespace planwright::executor {
namespace {

namespace fs = std::filesystem;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::SizeIs;

absl::Status Allowed() { return absl::OkStatus(); }

class LogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "rank_logXXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Runs it in a process of its own, with its stderr in a file, and returns how that ended.
  int InAProcess(const std::function<void()>& work) {
    const pid_t child = fork();
    if (child == 0) {
      if (std::freopen((folder_ + "/stderr").c_str(), "w", stderr) == nullptr) _exit(127);
      work();
      std::fflush(stderr);
      _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
  }
  std::string Text(const std::string& name) {
    std::ifstream file(folder_ + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::vector<std::string> Lines(const std::string& name) {
    std::ifstream file(folder_ + "/" + name);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  std::string folder_;
};

TEST_F(LogTest, ALineSaysWhenWhoAndWhere) {
  EXPECT_EQ(InAProcess([&] {
              setenv("GLOG_minloglevel", "2", 1);
              LogInfo("too early");
              if (!OpenLog(folder_, 17, Allowed).ok()) _exit(1);
              LogInfo("plain");
              LogWarning("strange");
              LogError("bad:\n  recipe: a.yaml:3:1");
              LogWarningFrom("/build/torch/Thing.cpp", 42, "theirs");
            }),
            0);
  const std::string when = "2[0-9]{7} [0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{6} [+-][0-9]{4} rank17 [0-9]+ ";
  const std::vector<std::string> lines = Lines("logs/rank0017.log");
  ASSERT_THAT(lines, SizeIs(5));
  EXPECT_THAT(lines[0], MatchesRegex("I" + when + "log_test\\.cc:[0-9]+\\] plain"));
  EXPECT_THAT(lines[1], MatchesRegex("W" + when + "log_test\\.cc:[0-9]+\\] strange"));
  EXPECT_THAT(lines[2], MatchesRegex("E" + when + "log_test\\.cc:[0-9]+\\] bad:"));
  EXPECT_EQ(lines[3], "  recipe: a.yaml:3:1");
  EXPECT_THAT(lines[4], MatchesRegex("W" + when + "Thing\\.cpp:42\\] theirs"));
  EXPECT_EQ(Text("stderr"), "") << "the launcher shows what ranks print; the log is not for the terminal";
}

TEST_F(LogTest, LinesOfManyThreadsAreWhole) {
  EXPECT_EQ(InAProcess([&] {
              if (!OpenLog(folder_, 0, Allowed, {.bytes = 100'000, .old_files = 9}).ok()) _exit(1);
              std::vector<std::thread> threads;
              for (int i = 0; i < 8; ++i) {
                threads.emplace_back([] {
                  for (int j = 0; j < 500; ++j) LogInfo("so it begins and so it ends");
                });
              }
              for (std::thread& thread : threads) thread.join();
            }),
            0);
  std::vector<std::string> all;
  for (const auto& entry : fs::directory_iterator(folder_ + "/logs")) {
    const std::vector<std::string> lines = Lines("logs/" + entry.path().filename().string());
    all.insert(all.end(), lines.begin(), lines.end());
  }
  EXPECT_THAT(all, SizeIs(4000));
  EXPECT_THAT(all, Each(MatchesRegex("I2[^]]*\\] so it begins and so it ends")));
}

TEST_F(LogTest, AKillTakesNoLineBack) {
  const int status = InAProcess([&] {
    if (!OpenLog(folder_, 0, Allowed).ok()) _exit(1);
    for (int i = 0; i < 50; ++i) LogWarning("warning " + std::to_string(i));
    LogInfo("the last");
    raise(SIGKILL);
  });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  const std::vector<std::string> lines = Lines("logs/rank0000.log");
  ASSERT_THAT(lines, SizeIs(51));
  EXPECT_THAT(lines[49], HasSubstr("] warning 49"));
  EXPECT_THAT(lines[50], HasSubstr("] the last"));
}

TEST_F(LogTest, AFullDiskIsNoErrorAndIsSaidOnce) {
  fs::create_directories(folder_ + "/logs");
  ASSERT_EQ(symlink("/dev/full", (folder_ + "/logs/rank0003.log").c_str()), 0);
  EXPECT_EQ(InAProcess([&] {
              if (!OpenLog(folder_, 3, Allowed).ok()) _exit(1);
              for (int i = 0; i < 5; ++i) LogError("nobody reads this");
            }),
            0);
  EXPECT_EQ(Text("stderr"), "rank 3 cannot write its log " + folder_ +
                                "/logs/rank0003.log (No space left on device); the run goes on without what is missing "
                                "there\n");
}

// The folder may be that of the newer life by now.
TEST_F(LogTest, ARankThatMayNotWriteMakesNoFile) {
  EXPECT_EQ(InAProcess([&] {
              const absl::Status status = OpenLog(folder_, 3, [] { return absl::AbortedError("replaced"); });
              if (!absl::IsAborted(status)) _exit(1);
              LogError("not here");
            }),
            0);
  EXPECT_TRUE(fs::is_empty(folder_ + "/logs"));
}

}  // namespace
}  // namespace planwright::executor
