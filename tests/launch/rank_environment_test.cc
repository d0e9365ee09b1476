#include "planner/launch/rank_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace planwright {
namespace {

using ::testing::UnorderedElementsAre;

TEST(RankEnvironment, ReplacesTheFieldsVariablesAndKeepsTheRest) {
  const LocalWorld world{8, 29511, "abc"};
  EXPECT_THAT(
      RankEnvironment(world, 3, {"PATH=/bin", "RANK=77", "MASTER_ADDR=elsewhere", "RANKED=yes"}),
      UnorderedElementsAre("PATH=/bin", "RANKED=yes", "RANK=3", "WORLD_SIZE=8", "LOCAL_RANK=3", "LOCAL_WORLD_SIZE=8",
                           "MASTER_ADDR=127.0.0.1", "MASTER_PORT=29511", "PLANWRIGHT_NONCE=abc", "OMP_NUM_THREADS=1"));
}

TEST(RankEnvironment, KeepsAThreadCountThatIsSet) {
  EXPECT_THAT(RankEnvironment({1, 1, "n"}, 0, {"OMP_NUM_THREADS=4"}), ::testing::Contains("OMP_NUM_THREADS=4"));
  EXPECT_THAT(RankEnvironment({1, 1, "n"}, 0, {"OMP_NUM_THREADS=4"}),
              ::testing::Not(::testing::Contains("OMP_NUM_THREADS=1")));
}

TEST(LocalWorld, HasAPortAndAFreshNonce) {
  absl::StatusOr<LocalWorld> one = MakeLocalWorld(2), other = MakeLocalWorld(2);
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_GT(one->port, 1023);
  EXPECT_EQ(one->nonce.size(), 32u);
  EXPECT_NE(one->nonce, other->nonce);
}

}  // namespace
}  // namespace planwright
