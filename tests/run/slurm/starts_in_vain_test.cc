#include "planner/run/slurm/starts_in_vain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace planwright {
namespace {

class StartsInVain : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "startsXXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    run_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(run_); }
  int Count(int64_t newest_step) { return CountStart(run_, newest_step).value_or(-1); }

  std::string run_;
};

TEST_F(StartsInVain, AreThoseWithoutANewCheckpoint) {
  EXPECT_EQ(Count(0), 1);
  EXPECT_EQ(Count(0), 2);
  EXPECT_EQ(Count(20), 0);
  EXPECT_EQ(Count(40), 0);
  for (int starts = 1; starts <= kMostStartsInVain; ++starts) EXPECT_EQ(Count(40), starts);
  EXPECT_EQ(Count(60), 0);
}

TEST_F(StartsInVain, ADamagedFileCountsAsNone) {
  for (const std::string text :
       {"", "{", "[]", "7", R"({"step": "x", "starts": 3})", R"({"step": 1.5, "starts": 3})"}) {
    std::ofstream(run_ + "/starts_in_vain") << text;
    EXPECT_EQ(Count(0), 1) << text;
  }
  std::ofstream(run_ + "/starts_in_vain") << R"({"step": 0, "starts": 9223372036854775807})";
  EXPECT_EQ(Count(0), kMostStartsInVain + 1);
}

// Slurm's count of starts has those in it that the job's time made.
TEST_F(StartsInVain, LostNodesCountForTheirJobAlone) {
  EXPECT_EQ(CountLostNode(run_, "7").value_or(-1), 1);
  EXPECT_EQ(CountLostNode(run_, "7").value_or(-1), 2);
  EXPECT_EQ(CountLostNode(run_, "8").value_or(-1), 1);
  std::ofstream(run_ + "/lost_nodes") << "{";
  EXPECT_EQ(CountLostNode(run_, "8").value_or(-1), 1);
  EXPECT_FALSE(CountLostNode(run_ + "/none", "8").ok());
}

TEST_F(StartsInVain, AFileThatCannotBeWrittenIsNamed) {
  const absl::Status status = CountStart(run_ + "/none", 0).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("/none/starts_in_vain"));
}

}  // namespace
}  // namespace planwright
