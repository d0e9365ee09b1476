// Logs on a file system that stands still.
#include "planner/run/launch/rank_logs.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <numeric>
#include <optional>

#include "planner/run/launch/local_processes.h"
#include "tests/support/eventually.h"
#include "tests/support/still_log.h"

namespace planwright {
namespace {

using namespace std::chrono_literals;
using testing::StillLog;

class RankLogsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "rank_logsXXXXXX";
    folder_ = mkdtemp(pattern.data());
    std::filesystem::create_directories(folder_ + "/logs");
    still_.emplace(path_ = folder_ + "/logs/rank0000.out");
    ASSERT_TRUE(still_->made());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string folder_, path_;
  std::optional<StillLog> still_;
};

TEST_F(RankLogsTest, AFileSystemThatStandsStillHoldsUpNobodyAndNothingIsLost) {
  std::optional<RankLogs> logs(std::in_place, folder_, std::vector<int>{0, 1});
  ASSERT_TRUE(logs->Open().ok());
  ASSERT_TRUE(StillLog::MakeWriterWait(path_));
  std::string all;
  int lines = 0;
  while (!logs->full()) {
    const std::string line = std::to_string(++lines) + std::string(10000, 'x');
    logs->Line(0, line);
    all += line + "\n";
  }
  EXPECT_LT(all.size(), kMostUnwritten + (size_t{1} << 20)) << "it is full with what it may hold, and with a pipe";
  EXPECT_FALSE(logs->Written(0));
  EXPECT_TRUE(logs->Written(1));
  std::future<std::string> read = std::async(std::launch::async, [&] { return still_->Read(); });
  pollfd changed = {logs->fd(), POLLIN, 0};
  const int patience = static_cast<int>(std::chrono::milliseconds(testing::kPatience).count());
  EXPECT_EQ(poll(&changed, 1, patience), 1) << "whoever waits for room is not woken";
  EXPECT_TRUE(logs->TakeProblems().empty());
  EXPECT_TRUE(testing::Eventually([&] { return !logs->full(); }));
  logs.reset();  // waits
  EXPECT_EQ(read.get(), all);
}

// What is read of ranks that print is bounded, all of it arrives, and an end comes behind what was printed.
TEST_F(RankLogsTest, RanksThatPrintWaitForTheirLogs) {
  constexpr size_t kLines = 150000, kBytes = 100;
  const Command command = {{"/bin/sh", "-c",
                            "while [ ! -e " + folder_ + "/go ]; do sleep 0.01; done; yes " +
                                std::string(kBytes - 1, 'x') + " | head -n " + std::to_string(kLines)},
                           {"PATH=/bin:/usr/bin"}};
  absl::StatusOr<std::unique_ptr<LocalProcesses>> ranks = LocalProcesses::Start({command}, {0}, folder_, false);
  ASSERT_TRUE(ranks.ok()) << ranks.status();
  ASSERT_TRUE(StillLog::MakeWriterWait(path_));
  std::ofstream(folder_ + "/go") << "go";
  size_t bytes = 0;
  bool ended = false;
  const auto turn = [&](std::chrono::milliseconds wait) {
    for (const ProcessEvent& event : (*ranks)->Wait(Processes::Clock::now() + wait)) {
      EXPECT_FALSE(ended) << event.text;
      if (event.kind == ProcessEvent::Kind::kLine) bytes += event.text.size() + 1;
      ended |= event.kind == ProcessEvent::Kind::kEnded;
    }
  };
  while (bytes < kMostUnwritten / 2) turn(10ms);
  for (int more = 0; more < 50; ++more) turn(10ms);
  EXPECT_LT(bytes, kBytes * kLines);
  EXPECT_FALSE(ended);
  std::future<std::string> read = std::async(std::launch::async, [&] { return still_->Read(); });
  while (!ended) turn(10ms);
  EXPECT_EQ(bytes, kBytes * kLines);
  ranks->reset();
  EXPECT_EQ(read.get().size(), kBytes * kLines);
}

}  // namespace
}  // namespace planwright
