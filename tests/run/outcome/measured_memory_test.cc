#include "planner/run/outcome/measured_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <numeric>

#include "planner/base/files/file_io.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class RunMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "memoryXXXXXX";
    folder_ = mkdtemp(pattern.data());
    fs::create_directories(folder_ + "/memory");
    plan_.world_size = 2;
    Role role;
    role.name = "m.s0", role.ranks = {{0, 2, 1}};
    plan_.roles.push_back(role);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void Write(const RankMemory& memory) {
    ASSERT_TRUE(WriteFileAtomically(RankMemoryPath(folder_, memory.rank), RankMemoryJson(memory)).ok());
  }

  std::string folder_;
  Plan plan_;
};

constexpr RankMemory kFull = {1, 10, 20, 30, 100, 120, 150};

TEST_F(RunMemoryTest, TheFullestRankSpeaksForItsRole) {
  Write({0, 10, 20, 30, 90, 200, 300});
  Write(kFull);
  const RunMemory memory = ReadRunMemory(plan_, folder_, true);
  EXPECT_EQ(memory.why_not, "");
  ASSERT_EQ(memory.roles.size(), 1U);
  EXPECT_EQ(memory.roles[0].rank, 1);
  EXPECT_EQ(memory.roles[0].all.measured, 150);
  const nlohmann::ordered_json json = RunMemoryJson(memory);
  EXPECT_EQ(json[0]["role"], "m.s0");
  EXPECT_EQ(json[0]["bytes"][3].dump(), R"({"name":"values of a step","planned":0,"measured":40})");
}

TEST_F(RunMemoryTest, LinesAddUpOnBothSides) {
  RoleEstimate estimate;
  estimate.role = &plan_.roles[0];
  estimate.planned = {11, 22, 33, 44, 55, 66};
  estimate.libraries = 60;
  const RoleMemory memory = CompareMemory(kFull, estimate);
  int64_t planned = 0, measured = 0;
  for (const MemoryLine& line : memory.lines) planned += line.planned.value_or(0), measured += line.measured;
  EXPECT_EQ(planned, memory.all.planned);
  EXPECT_EQ(planned, estimate.planned.total());
  EXPECT_EQ(measured, memory.all.measured);
  EXPECT_EQ(memory.lines[3].planned, 44 + 55 + 6) << "what the allocator counts of a step";
  EXPECT_FALSE(memory.lines[4].planned) << "the plan knows no allocator";
}

TEST_F(RunMemoryTest, SaysWhyThereIsNone) {
  EXPECT_EQ(RunMemoryJson(ReadRunMemory(plan_, folder_, false)), "not measured on CPUs");
  Write({0, 10, 20, 30, 90, 200, 300});
  EXPECT_THAT(ReadRunMemory(plan_, folder_, true).why_not, HasSubstr("memory/rank0001.json"));
  ASSERT_TRUE(WriteFileAtomically(RankMemoryPath(folder_, 1), "{\"rank\": 1}").ok());
  EXPECT_THAT(ReadRunMemory(plan_, folder_, true).why_not, HasSubstr("memory/rank0001.json: no memory of a rank: "));
}

}  // namespace
}  // namespace planwright
