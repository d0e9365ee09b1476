#include "planner/launch/rank_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "planner/rendezvous/store_client.h"
#include "tests/support/eventually.h"

namespace planwright {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

LocalWorld World(int world_size, const std::string& interface = "") {
  absl::StatusOr<LocalWorld> world = MakeLocalWorld(world_size, interface);
  EXPECT_TRUE(world.ok()) << world.status();
  return *std::move(world);
}

TEST(RankEnvironment, ReplacesTheFieldsVariablesAndKeepsTheRest) {
  const LocalWorld world = World(8);
  EXPECT_THAT(RankEnvironment(world, 3,
                              {"PATH=/bin", "RANK=77", "MASTER_ADDR=elsewhere", "PLANWRIGHT_SECRET=old", "RANKED=yes"}),
              UnorderedElementsAre(
                  "PATH=/bin", "RANKED=yes", "RANK=3", "WORLD_SIZE=8", "LOCAL_RANK=3", "LOCAL_WORLD_SIZE=8",
                  "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + std::to_string(world.store->port()),
                  "PLANWRIGHT_NONCE=" + world.nonce, "PLANWRIGHT_SECRET=" + world.secret, "OMP_NUM_THREADS=1"));
}

TEST(RankEnvironment, KeepsAThreadCountThatIsSet) {
  const LocalWorld world = World(1);
  EXPECT_THAT(RankEnvironment(world, 0, {"OMP_NUM_THREADS=4"}), Contains("OMP_NUM_THREADS=4"));
  EXPECT_THAT(RankEnvironment(world, 0, {"OMP_NUM_THREADS=4"}), Not(Contains("OMP_NUM_THREADS=1")));
}

TEST(RankEnvironment, NamesTheInterfaceToAllThatConnect) {
  const LocalWorld world = World(2, "lo");
  EXPECT_EQ(world.store->address(), "127.0.0.1");
  const std::vector<std::string> environment = RankEnvironment(world, 1, {"GLOO_SOCKET_IFNAME=eth7"});
  EXPECT_THAT(environment, Contains("GLOO_SOCKET_IFNAME=lo"));
  EXPECT_THAT(environment, Contains("NCCL_SOCKET_IFNAME==lo"));
  EXPECT_THAT(environment, Not(Contains("GLOO_SOCKET_IFNAME=eth7")));
  // Without one, what the user has set stays.
  EXPECT_THAT(RankEnvironment(World(2), 1, {"GLOO_SOCKET_IFNAME=eth7"}), Contains("GLOO_SOCKET_IFNAME=eth7"));
}

TEST(LocalWorld, HasAnOwnStoreNonceAndSecret) {
  const LocalWorld one = World(2), other = World(2);
  EXPECT_EQ(one.nonce.size(), 32u);
  EXPECT_NE(one.nonce, other.nonce);
  EXPECT_NE(one.secret, other.secret);
  EXPECT_NE(one.store->port(), other.store->port());
  const auto connect = [](const LocalWorld& to, const std::string& secret) {
    return StoreClient::Connect({"here", {to.store->address()}, to.store->port()}, secret, testing::kPatience).status();
  };
  EXPECT_TRUE(connect(one, one.secret).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(connect(one, other.secret)));
}

TEST(LocalWorld, AnInterfaceThatThereIsNotIsAnError) {
  const absl::StatusOr<LocalWorld> world = MakeLocalWorld(1, "nosuch0");
  ASSERT_TRUE(absl::IsInvalidArgument(world.status())) << world.status();
  EXPECT_THAT(std::string(world.status().message()),
              HasSubstr("launch.interface: there is no network interface 'nosuch0'; this machine has "));
  EXPECT_THAT(std::string(world.status().message()), HasSubstr("lo (127.0.0.1)"));
}

}  // namespace
}  // namespace planwright
