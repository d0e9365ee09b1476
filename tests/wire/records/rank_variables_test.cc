// The variables that ranks had, from the first rank of each node to the outcome.
#include "planner/wire/records/rank_variables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "planner/wire/records/outcome.h"

namespace planwright {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(RankVariables, AreThoseThatLibrariesRead) {
  setenv("NCCL_OF_TEST", "a\tb", 1);
  setenv("SECRET_OF_TEST", "no", 1);
  setenv("PLANWRIGHT_SECRET", "no", 1);
  const std::vector<RankVariable> variables = LibraryVariables(3);
  for (const char* name : {"NCCL_OF_TEST", "SECRET_OF_TEST", "PLANWRIGHT_SECRET"}) unsetenv(name);
  EXPECT_THAT(variables, Contains(RankVariable{"NCCL_OF_TEST", "a\\x09b", {3}}));
  for (const RankVariable& one : variables) EXPECT_NE(one.value, "no") << one.name;
}

TEST(RankVariables, OfAllNodesAreOneList) {
  const std::string run = ::testing::TempDir() + "rank_variables";
  std::filesystem::remove_all(run);
  EXPECT_THAT(ReadRankVariables(run, 16), IsEmpty());
  ASSERT_TRUE(WriteRankVariables(run, 0, {{"NCCL_DEBUG", "INFO", {0}}, {"UCX_TLS", "rc", {0}}}).ok());
  ASSERT_TRUE(WriteRankVariables(run, 8, {{"NCCL_DEBUG", "INFO", {8}}, {"UCX_TLS", "tcp", {8}}}).ok());
  std::ofstream(run + "/logs/rank0012.environment.json") << "{damaged";
  std::ofstream(run + "/logs/rank0000.log") << "[]";
  ASSERT_TRUE(WriteRankVariables(run, 16, {{"A", "of another layout", {16}}}).ok());
  const std::vector<RankVariable> all = ReadRankVariables(run, 16);
  EXPECT_THAT(all, ElementsAre(RankVariable{"NCCL_DEBUG", "INFO", {0, 8}}, RankVariable{"UCX_TLS", "rc", {0}},
                               RankVariable{"UCX_TLS", "tcp", {8}}));
  EXPECT_THAT(VariablesThatDiffer(all),
              ElementsAre("UCX_TLS differs: rc on the nodes of ranks 0; tcp on the nodes of ranks 8"));
  std::filesystem::remove_all(run);
}

TEST(RankVariables, OneThatANodeLacksDiffers) {
  EXPECT_THAT(VariablesThatDiffer({{"A", "1", {0, 8}}, {"B", "2", {0}}}),
              ElementsAre("B differs: 2 on the nodes of ranks 0; not set on those of ranks 8"));
}

TEST(RankVariables, AreInTheOutcome) {
  Outcome outcome = {.exit_code = 0, .cause = "done"};
  outcome.environment = {{"NCCL_DEBUG", "INFO", {0, 8}}, {"UCX_TLS", "rc", {8}}};
  const absl::StatusOr<Outcome> read = ReadOutcome(OutcomeFile(outcome));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, outcome);
  EXPECT_THAT(RankVariablesFrom(nlohmann::json::parse(R"([1, {"name": "A"}, {"name": "B", "ranks": [-1, "x"]}])")),
              IsEmpty());
}

}  // namespace
}  // namespace planwright
