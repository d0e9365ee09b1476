#include "planner/run/launch/rank_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "planner/run/launch/local_starter.h"
#include "planner/wire/rendezvous/store_client.h"
#include "tests/support/eventually.h"

namespace planwright {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

World Make(const std::string& interface = "") {
  absl::StatusOr<World> world = MakeWorld("127.0.0.1", interface, "the key");
  EXPECT_TRUE(world.ok()) << world.status();
  return *std::move(world);
}

TEST(RankEnvironment, ReplacesTheFieldsVariablesAndKeepsTheRest) {
  const World world = Make();
  EXPECT_THAT(RankEnvironment(VariablesOf(world), {.rank = 7, .world_size = 8, .local_rank = 3, .local_size = 4},
                              {"PATH=/bin", "RANK=77", "MASTER_ADDR=elsewhere", "PLANWRIGHT_SECRET=old", "RANKED=yes",
                               "SLURM_PROCID=1", "SLURM_JOB_ID=5"}),
              UnorderedElementsAre(
                  "PATH=/bin", "RANKED=yes", "SLURM_JOB_ID=5", "RANK=7", "WORLD_SIZE=8", "LOCAL_RANK=3",
                  "LOCAL_WORLD_SIZE=4", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + std::to_string(world.store->port()),
                  "PLANWRIGHT_NONCE=" + world.nonce, "PLANWRIGHT_SECRET=" + world.secret, "OMP_NUM_THREADS=1"));
}

TEST(RankEnvironment, SaysWhetherCoresAreTheRanksOwn) {
  EXPECT_THAT(RankEnvironment({}, {.own_cores = true}, {}), Contains("PLANWRIGHT_OWN_CORES=1"));
  // Said to the process that launches: its ranks share its cores.
  EXPECT_THAT(RankEnvironment({}, {}, {"PLANWRIGHT_OWN_CORES=1"}), Not(Contains(HasSubstr("PLANWRIGHT_OWN_CORES"))));
}

TEST(RankEnvironment, KeepsAThreadCountThatIsSet) {
  EXPECT_THAT(RankEnvironment({}, {}, {"OMP_NUM_THREADS=4"}), Contains("OMP_NUM_THREADS=4"));
  EXPECT_THAT(RankEnvironment({}, {}, {"OMP_NUM_THREADS=4"}), Not(Contains("OMP_NUM_THREADS=1")));
  // The recipe's is the last word.
  EXPECT_THAT(RankEnvironment({{"OMP_NUM_THREADS", "2"}}, {}, {"OMP_NUM_THREADS=4"}), Contains("OMP_NUM_THREADS=2"));
  EXPECT_THAT(RankEnvironment({{"OMP_NUM_THREADS", "2"}}, {}, {}), Not(Contains("OMP_NUM_THREADS=1")));
}

// An agent has the environment of another shell than the launcher.
TEST(RankEnvironment, HasTheTimeOutOfTheLauncherAndNoOther) {
  const std::string inherited = "PLANWRIGHT_TIMEOUT_SECONDS=5";
  EXPECT_THAT(RankEnvironment({}, {}, {inherited}), Not(Contains(HasSubstr("PLANWRIGHT_TIMEOUT_SECONDS"))));
  const std::vector<std::string> environment =
      RankEnvironment({{"PLANWRIGHT_TIMEOUT_SECONDS", "17.5"}}, {}, {inherited});
  EXPECT_THAT(environment, Contains("PLANWRIGHT_TIMEOUT_SECONDS=17.5"));
  EXPECT_THAT(environment, Not(Contains(inherited)));
}

TEST(RankEnvironment, NamesTheInterfaceToAllThatConnect) {
  const std::vector<std::string> environment = RankEnvironment(VariablesOf(Make("ib0")), {}, {"GLOO_SOCKET_IFNAME=e7"});
  EXPECT_THAT(environment, Contains("GLOO_SOCKET_IFNAME=ib0"));
  EXPECT_THAT(environment, Contains("NCCL_SOCKET_IFNAME==ib0"));
  EXPECT_THAT(environment, Not(Contains("GLOO_SOCKET_IFNAME=e7")));
  // Without one, what the user has set stays.
  EXPECT_THAT(RankEnvironment(VariablesOf(Make()), {}, {"GLOO_SOCKET_IFNAME=e7"}), Contains("GLOO_SOCKET_IFNAME=e7"));
}

TEST(World, HasAnOwnStoreNonceAndSecret) {
  const World one = Make(), other = Make();
  EXPECT_EQ(one.nonce.size(), 32u);
  EXPECT_NE(one.nonce, other.nonce);
  EXPECT_NE(one.secret, other.secret);
  EXPECT_NE(one.store->port(), other.store->port());
  const auto connect = [](const World& to, const std::string& secret) {
    const Endpoint endpoint{"here", {to.store->address()}, to.store->port()};
    return StoreClient::Connect(endpoint, secret, testing::kPatience).status();
  };
  EXPECT_TRUE(connect(one, one.secret).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(connect(one, other.secret)));
}

TEST(World, AnAddressThatIsNotHereIsAnError) {
  EXPECT_TRUE(absl::IsUnavailable(MakeWorld("198.51.100.77", "", "the key").status()));
}

TEST(LocalStoreAddress, IsThatOfTheInterface) {
  EXPECT_EQ(*LocalStoreAddress(""), "127.0.0.1");
  EXPECT_EQ(*LocalStoreAddress("lo"), "127.0.0.1");
  const absl::Status status = LocalStoreAddress("nosuch0").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("launch.interface: there is no network interface 'nosuch0'; this machine has "));
}

}  // namespace
}  // namespace planwright
