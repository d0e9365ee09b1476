#include "planner/launch/rank_environment.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <set>
#include <vector>

namespace planwright {
namespace {

// Whether a server can listen at the port of an address. `shares`: it sets SO_REUSEADDR, as servers do.
bool CanListen(int port, bool shares, in_addr_t of = INADDR_ANY) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0), on = shares ? 1 : 0;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(of);
  const bool listens = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                       bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && listen(fd, 1) == 0;
  close(fd);
  return listens;
}

using ::testing::UnorderedElementsAre;

TEST(RankEnvironment, ReplacesTheFieldsVariablesAndKeepsTheRest) {
  const World world{"10.1.2.3", HeldPort(-1, 29511), "abc"};
  EXPECT_THAT(RankEnvironment(
                  VariablesOf(world), {.rank = 7, .world_size = 8, .local_rank = 3, .local_size = 4},
                  {"PATH=/bin", "RANK=77", "MASTER_ADDR=elsewhere", "RANKED=yes", "SLURM_PROCID=1", "SLURM_JOB_ID=5"}),
              UnorderedElementsAre("PATH=/bin", "RANKED=yes", "SLURM_JOB_ID=5", "RANK=7", "WORLD_SIZE=8",
                                   "LOCAL_RANK=3", "LOCAL_WORLD_SIZE=4", "MASTER_ADDR=10.1.2.3", "MASTER_PORT=29511",
                                   "PLANWRIGHT_NONCE=abc", "OMP_NUM_THREADS=1"));
}

TEST(RankEnvironment, KeepsAThreadCountThatIsSet) {
  EXPECT_THAT(RankEnvironment({}, {}, {"OMP_NUM_THREADS=4"}), ::testing::Contains("OMP_NUM_THREADS=4"));
  EXPECT_THAT(RankEnvironment({}, {}, {"OMP_NUM_THREADS=4"}), ::testing::Not(::testing::Contains("OMP_NUM_THREADS=1")));
}

TEST(World, HasAPortAndAFreshNonce) {
  absl::StatusOr<World> one = MakeWorld("127.0.0.1"), other = MakeWorld("127.0.0.1");
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_GT(one->port.number(), 1023);
  EXPECT_EQ(one->nonce.size(), 32u);
  EXPECT_NE(one->nonce, other->nonce);
}

TEST(World, HoldsItsPort) {
  int port = 0;
  {
    absl::StatusOr<World> world = MakeWorld("127.0.0.1");
    ASSERT_TRUE(world.ok());
    port = world->port.number();
    EXPECT_FALSE(CanListen(port, false));  // nobody gets it by chance
    EXPECT_FALSE(CanListen(port, false, INADDR_LOOPBACK));
    EXPECT_FALSE(CanListen(port, false, INADDR_LOOPBACK + 1));  // another address of this machine: 127.0.0.2
    EXPECT_TRUE(CanListen(port, true));                         // rank 0 does
    std::vector<World> others;
    std::set<int> ports = {port};
    for (int i = 0; i < 200; ++i) {
      absl::StatusOr<World> other = MakeWorld("127.0.0.1");
      ASSERT_TRUE(other.ok());
      EXPECT_TRUE(ports.insert(other->port.number()).second);
      others.push_back(*std::move(other));
    }
  }
  EXPECT_TRUE(CanListen(port, false));  // the world is gone
}

}  // namespace
}  // namespace planwright
