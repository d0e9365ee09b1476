// Logs that take a bounded share of the disk and lose no line without saying so.
#include "planner/base/files/log_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace planwright {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LogFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "logXXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Text(const std::string& name) {
    std::ifstream file(folder_ + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::vector<std::string> Names(const std::string& folder) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  std::string folder_;
};

TEST_F(LogFileTest, NamesOfARank) {
  EXPECT_EQ(RankLogName(3), "rank0003.log");
  EXPECT_EQ(RankOutputName(12345), "rank12345.out");
}

TEST_F(LogFileTest, GoesOnBehindWhatIsThere) {
  const std::string logs = folder_ + "/run/logs";
  LogFile(logs, "a.log").Write("one");
  LogFile(logs, "a.log").Write("two\n  and more");
  EXPECT_EQ(Text("run/logs/a.log"), "one\ntwo\n  and more\n");
}

TEST_F(LogFileTest, KeepsTheNewestLinesInSoManyFiles) {
  LogFile log(folder_, "a.log", {.bytes = 100, .old_files = 3});
  for (int i = 0; i < 1000; ++i) log.Write("line " + std::to_string(10000 + i));
  EXPECT_EQ(log.lost(), 0);
  EXPECT_THAT(Names(folder_), ElementsAre("a.log", "a.log.1", "a.log.2", "a.log.3"));
  std::string all;
  for (const char* name : {"a.log.3", "a.log.2", "a.log.1", "a.log"}) {
    EXPECT_LE(Text(name).size(), 100u);
    EXPECT_GE(Text(name).size(), 1u);
    all += Text(name);
  }
  // 9 lines of 11 bytes in each full file, none of them twice and none left out.
  std::string expected;
  const int lines = static_cast<int>(all.size() / 11);
  EXPECT_GE(lines, 3 * 9);
  for (int i = 1000 - lines; i < 1000; ++i) expected += "line " + std::to_string(10000 + i) + "\n";
  EXPECT_EQ(all, expected);
}

TEST_F(LogFileTest, ALineThatIsLongerThanAFileIsKeptWhole) {
  LogFile log(folder_, "a.log", {.bytes = 100, .old_files = 1});
  log.Write("short");
  log.Write(std::string(1000, 'x'));
  log.Write("after");
  EXPECT_EQ(Text("a.log.1"), std::string(1000, 'x') + "\n");
  EXPECT_EQ(Text("a.log"), "after\n");
}

// As when a newer life of the run begins: its logs have the old path.
TEST_F(LogFileTest, StaysInItsFolderWhenThatIsRenamed) {
  const std::string logs = folder_ + "/logs", moved = folder_ + "/moved";
  LogFile log(logs, "a.log", {.bytes = 100, .old_files = 2}), late(logs, "late.log");
  log.Write("first");
  fs::rename(logs, moved);
  fs::create_directory(logs);
  for (int i = 0; i < 100; ++i) log.Write("a line of the old life");
  late.Write("late");
  EXPECT_EQ(log.lost(), 0);
  EXPECT_THAT(Names(logs), ElementsAre());
  EXPECT_THAT(Names(moved), ElementsAre("a.log", "a.log.1", "a.log.2", "late.log"));
}

TEST_F(LogFileTest, AFullDiskLosesLinesAndNothingElse) {
  ASSERT_EQ(symlink("/dev/full", (folder_ + "/a.log").c_str()), 0);
  LogFile log(folder_, "a.log");
  EXPECT_TRUE(log.Open().ok());
  for (int i = 0; i < 3; ++i) log.Write("line");
  EXPECT_EQ(log.lost(), 3);
  EXPECT_EQ(log.problem(), "No space left on device");
}

TEST_F(LogFileTest, SaysWhatIsMissingOnceThereIsRoomAgain) {
  signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit limit = before;
  limit.rlim_cur = 20;
  LogFile log(folder_, "a.log");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  log.Write("fits");
  log.Write("begins, but does not fit");
  log.Write("does not fit");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  log.Write("fits again");
  log.Write("the last");
  EXPECT_EQ(Text("a.log"), "fits\nbegins, but doe\n[2 lines are missing here: File too large]\nfits again\nthe last\n");
  EXPECT_EQ(log.lost(), 2);
}

TEST_F(LogFileTest, APipeInItsPlaceDoesNotHoldItUp) {
  ASSERT_EQ(mkfifo((folder_ + "/a.log").c_str(), 0644), 0);
  LogFile log(folder_, "a.log");
  EXPECT_THAT(std::string(log.Open().message()), "cannot write " + folder_ + "/a.log: No such device or address");
  log.Write("lost");
  EXPECT_EQ(log.lost(), 1);
}

TEST_F(LogFileTest, AFolderThatCannotBeIsAnErrorOfOpen) {
  std::ofstream(folder_ + "/file") << "a file";
  LogFile log(folder_ + "/file/logs", "a.log");
  EXPECT_THAT(std::string(log.Open().message()), HasSubstr("/file/logs/a.log: Not a directory"));
  log.Write("lost");
  EXPECT_EQ(log.lost(), 1);
}

// Too much is better than nothing.
TEST_F(LogFileTest, GrowsOnIfItCannotBeRenamed) {
  fs::create_directories(folder_ + "/a.log.1/in the way");
  LogFile log(folder_, "a.log", {.bytes = 100, .old_files = 1});
  for (int i = 0; i < 100; ++i) log.Write("a line");
  EXPECT_EQ(log.lost(), 0);
  EXPECT_EQ(Text("a.log").size(), 700u);
}

TEST_F(LogFileTest, IsWholeWhenItsProcessIsKilled) {
  const pid_t child = fork();
  if (child == 0) {
    LogFile log(folder_, "a.log");
    for (int i = 0; i < 100; ++i) log.Write("line " + std::to_string(i));
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_THAT(Text("a.log"), HasSubstr("line 98\nline 99\n"));
}

}  // namespace
}  // namespace planwright
