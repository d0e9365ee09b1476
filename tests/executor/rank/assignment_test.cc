// What a rank is asked to do by its command line, its plan and its environment, and what of it does not go together.
#include "executor/rank/assignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "planner/plan/plan_json.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright::executor {
namespace {

using ::testing::HasSubstr;

class AssignmentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = ::testing::TempDir() + "assignmentXXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    const Plan plan = testing::CompiledFile(InSource("recipes/nemotron_moe_vlm_tiny.yaml"),
                                            {"modules.language.placement.first_rank=1",
                                             "modules.language.placement.ranks=2", "modules.language.parallel.pp=2"});
    world_size_ = plan.world_size, steps_ = plan.budget.steps;
    std::ofstream(folder_ + "/plan.json") << WritePlan(plan);
    Set({{"RANK", "1"},
         {"LOCAL_RANK", "1"},
         {"WORLD_SIZE", std::to_string(world_size_)},
         {"MASTER_ADDR", "127.0.0.1"},
         {"MASTER_PORT", "4711"}});
    for (const char* others : {"PLANWRIGHT_TIMEOUT_SECONDS", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID",
                               "GLOO_SOCKET_IFNAME", "LOCAL_WORLD_SIZE"})
      unsetenv(others);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static void Set(const std::map<std::string, std::string>& variables) {
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  }
  absl::StatusOr<Assignment> Read(std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"executor", "--plan", folder_ + "/plan.json", "--run-dir", folder_ + "/run"};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<const char*> pointers;
    for (const std::string& word : words) pointers.push_back(word.c_str());
    StartUp start_up;
    return ReadAssignment(
        static_cast<int>(pointers.size()), pointers.data(), [this](Plan& plan) { return prepare_(plan); }, start_up);
  }
  void ExpectRefused(const std::vector<std::string>& words, const std::string& why) {
    const absl::Status status = Read(words).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  }

  std::string folder_;
  int world_size_ = 0;
  int64_t steps_ = 0;
  std::function<absl::Status(Plan&)> prepare_ = [](Plan&) { return absl::OkStatus(); };
};

TEST_F(AssignmentTest, IsThatOfOneRankOfThePlan) {
  const absl::StatusOr<Assignment> assignment = Read();
  ASSERT_TRUE(assignment.ok()) << assignment.status();
  EXPECT_EQ(assignment->rank(), 1);
  EXPECT_EQ(&assignment->role(), assignment->plan.RoleOf(1));
  EXPECT_EQ(assignment->steps, steps_);
  EXPECT_EQ(assignment->self(), "rank 1 on " + assignment->environment.host + ": ");
}

TEST_F(AssignmentTest, StepsAreAtMostThoseOfThePlan) {
  for (const int64_t steps : {int64_t{1}, steps_ + 5}) {
    const absl::StatusOr<Assignment> assignment = Read({"--steps", std::to_string(steps)});
    ASSERT_TRUE(assignment.ok()) << assignment.status();
    EXPECT_EQ(assignment->steps, std::min(steps, steps_));
  }
  ExpectRefused({"--steps", "1", "--trace", "2"}, "1 step");
}

TEST_F(AssignmentTest, ThePlanIsPrepared) {
  prepare_ = [](Plan&) { return absl::InvalidArgumentError("the plan breaks rule V0"); };
  ExpectRefused({}, "the plan breaks rule V0");
}

TEST_F(AssignmentTest, DeadlinesAreReplacedByTheTimeOut) {
  Set({{"PLANWRIGHT_TIMEOUT_SECONDS", "12.5"}});
  const absl::StatusOr<Assignment> assignment = Read();
  ASSERT_TRUE(assignment.ok()) << assignment.status();
  EXPECT_EQ(assignment->deadlines.OfWaiting().first, 12.5);
  EXPECT_EQ(assignment->deadlines.OfWaiting().later, 12.5);
  Set({{"PLANWRIGHT_TIMEOUT_SECONDS", "soon"}});
  ExpectRefused({}, "PLANWRIGHT_TIMEOUT_SECONDS='soon'");
}

TEST_F(AssignmentTest, PlanAndEnvironmentMustGoTogether) {
  Set({{"WORLD_SIZE", "64"}});
  ExpectRefused({}, "WORLD_SIZE=64 but the plan has " + std::to_string(world_size_) + " ranks");
  unsetenv("RANK");
  ExpectRefused({}, "RANK");
}

TEST_F(AssignmentTest, ThePlanMustBeReadable) {
  std::ofstream(folder_ + "/plan.json") << "{";
  ExpectRefused({}, folder_ + "/plan.json: ");
  std::filesystem::remove(folder_ + "/plan.json");
  ExpectRefused({}, "cannot read " + folder_ + "/plan.json: No such file or directory");
}

}  // namespace
}  // namespace planwright::executor
