#include "planner/run/outcome/sum_traces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "planner/base/files/file_io.h"

namespace planwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RunProfileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "profileXXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Milliseconds.
  struct Run {
    const char* part;
    const char* kind;
    int stream = 0;
    int64_t begin = 0, end = 0, host = 1;
  };

  void Write(int rank, const std::string& role, StepRange steps, const std::vector<Run>& runs) {
    Trace trace{.rank = rank, .role = role, .steps = steps, .streams = {"", "other"}, .instructions = {}};
    for (const Run& run : runs) {
      TraceInstruction instruction;
      instruction.step = steps.first, instruction.number = static_cast<int64_t>(trace.instructions.size());
      instruction.part = run.part, instruction.kind = run.kind, instruction.op_class = "compute";
      instruction.stream = run.stream;
      instruction.begin = run.begin * 1'000'000, instruction.end = run.end * 1'000'000;
      instruction.launch_end = (run.host + 7) * 1'000'000;
      instruction.waited = 7'000'000;  // for a device that is far behind: not what launching takes
      trace.instructions.push_back(instruction);
    }
    std::filesystem::create_directories(folder_ + "/trace");
    ASSERT_TRUE(WriteFileAtomically(TracePath(folder_, rank), TraceJson(trace)).ok());
    plan_.world_size = std::max(plan_.world_size, rank + 1);
  }

  static void ExpectSum(const RoleProfile& role) {
    EXPECT_NEAR(role.step, role.instructions - role.overlap + role.idle, 1e-9);
    ProfileRow sum;
    for (const ProfilePart& part : role.parts) {
      ProfileRow whole;
      for (const ProfileRow& row : part.kinds) whole.times += row.times, whole.device += row.device;
      EXPECT_NEAR(part.whole.times, whole.times, 1e-9);
      EXPECT_NEAR(part.whole.device, whole.device, 1e-9);
      sum.device += whole.device;
    }
    EXPECT_NEAR(role.instructions, sum.device, 1e-9);
  }

  std::string folder_;
  Plan plan_;
};

TEST_F(RunProfileTest, OneStreamIsWorkAndGaps) {
  Write(0, "m.s0", {3, 3},
        {{"m.mamba", "linear", 0, 10, 14},
         {"m.mamba", "norm", 0, 14, 15},
         {"m.mamba", "linear", 0, 18, 20},
         {"data", "read", 0, 21, 22, 5}});
  const absl::StatusOr<RunProfile> profile = ReadRunProfile(plan_, {}, folder_);
  ASSERT_TRUE(profile.ok()) << profile.status();
  ASSERT_EQ(profile->roles.size(), 1u);
  const RoleProfile& role = profile->roles[0];
  ExpectSum(role);
  EXPECT_DOUBLE_EQ(role.step, 12);
  EXPECT_DOUBLE_EQ(role.idle, 4);
  EXPECT_DOUBLE_EQ(role.overlap, 0);
  ASSERT_EQ(role.parts.size(), 2u);
  EXPECT_EQ(role.parts[0].whole.name, "m.mamba");
  ASSERT_EQ(role.parts[0].kinds.size(), 2u);
  EXPECT_EQ(role.parts[0].kinds[0].name, "linear");
  EXPECT_DOUBLE_EQ(role.parts[0].kinds[0].times, 2);
  EXPECT_DOUBLE_EQ(role.parts[0].kinds[0].device, 6);
  EXPECT_DOUBLE_EQ(role.parts[0].kinds[0].idle_before, 3);
  EXPECT_DOUBLE_EQ(role.parts[1].whole.host, 5);
}

TEST_F(RunProfileTest, WhatRunsAtTheSameTimeIsCountedOnce) {
  // On the second stream one runs beside others, one within another, and one alone.
  Write(0, "m.s0", {3, 3},
        {{"a", "x", 0, 0, 4}, {"a", "y", 1, 2, 9}, {"a", "x", 0, 4, 6}, {"a", "x", 0, 6, 8}, {"a", "y", 1, 12, 14}});
  const absl::StatusOr<RunProfile> profile = ReadRunProfile(plan_, {}, folder_);
  ASSERT_TRUE(profile.ok()) << profile.status();
  const RoleProfile& role = profile->roles[0];
  ExpectSum(role);
  EXPECT_DOUBLE_EQ(role.step, 14);
  EXPECT_DOUBLE_EQ(role.instructions, 17);
  EXPECT_DOUBLE_EQ(role.overlap, 6);
  EXPECT_DOUBLE_EQ(role.idle, 3);
}

TEST_F(RunProfileTest, IsTheMeanOfStepsAndOfTheRanksOfARole) {
  Write(0, "m.s1", {3, 4}, {{"a", "x", 0, 0, 4}, {"a", "x", 0, 4, 8}});
  Write(1, "m.s0", {3, 4}, {{"a", "x", 0, 0, 2}, {"b", "z", 0, 6, 10}});
  Write(2, "m.s1", {3, 4}, {{"a", "x", 0, 0, 6}, {"a", "x", 0, 6, 16}});
  const absl::StatusOr<RunProfile> profile = ReadRunProfile(plan_, {}, folder_);
  ASSERT_TRUE(profile.ok()) << profile.status();
  ASSERT_EQ(profile->roles.size(), 2u);
  const RoleProfile &two = profile->roles[0], &one = profile->roles[1];
  EXPECT_EQ(two.role, "m.s1");
  EXPECT_THAT(two.ranks, ElementsAre(0, 2));
  EXPECT_THAT(one.ranks, ElementsAre(1));
  ExpectSum(two), ExpectSum(one);
  EXPECT_DOUBLE_EQ(two.parts[0].whole.times, 1);
  EXPECT_DOUBLE_EQ(two.step, 6);
  EXPECT_DOUBLE_EQ(two.slowest_step, 8);
  EXPECT_DOUBLE_EQ(two.parts[0].kinds[0].slowest_rank, 8);
  EXPECT_DOUBLE_EQ(two.parts[0].whole.slowest_rank, 8);
  EXPECT_DOUBLE_EQ(two.slowest_instructions, 8);
  const nlohmann::ordered_json json = RunProfileJson(*profile);
  EXPECT_EQ(json["first_step"], 3);
  EXPECT_EQ(json["roles"][1]["parts"][0]["name"], "b");
  EXPECT_EQ(json["roles"][1]["idle_ms"], 2);
  EXPECT_EQ(json["roles"][1]["parts"][0]["instructions"][0]["device_ms"], 2);
}

TEST_F(RunProfileTest, ATraceThatIsMissingOrDamagedIsNamed) {
  Write(0, "m.s0", {3, 3}, {{"a", "x", 0, 0, 4}});
  plan_.world_size = 2;
  EXPECT_THAT(ReadRunProfile(plan_, {}, folder_).status().message(), HasSubstr("trace/rank0001.json"));
  ASSERT_TRUE(WriteFileAtomically(TracePath(folder_, 1), "{").ok());
  EXPECT_THAT(ReadRunProfile(plan_, {}, folder_).status().message(), HasSubstr("trace/rank0001.json: no trace: "));
}

}  // namespace
}  // namespace planwright
