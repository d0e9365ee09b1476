#include "executor/communication/rendezvous.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "tests/executor/communication/world.h"
#include "tests/support/eventually.h"

namespace planwright::executor {
namespace {

Environment Local(int rank, int ranks, int port) {
  return {.rank = rank,
          .world_size = ranks,
          .local_rank = rank,
          .address = "127.0.0.1",
          .port = port,
          .nonce = "run1",
          .host = "host" + std::to_string(rank),
          .timeout = testing::kPatience};
}

// The outcome of AgreeOnPlan as an exit status: 0 agreed; 14 refused, and the message contains all of `names`; 3
// refused without them; 4 anything else.
int Agree(Environment environment, const std::string& digest, const std::vector<std::string>& names) {
  auto store = OpenStore(environment);
  if (!store.ok()) return 4;
  const absl::Status status = AgreeOnPlan(environment, digest, **store);
  if (status.ok()) {
    WaitForAll(environment, "end", testing::kPatience, **store);
    return 0;
  }
  if (status.code() != absl::StatusCode::kFailedPrecondition) return 4;
  for (const std::string& name : names) {
    if (status.message().find(name) == absl::string_view::npos) return 3;
  }
  return 14;
}

TEST(Rendezvous, RanksOfOnePlanAgree) {
  EXPECT_EQ(RunWorld(3, [](int rank, int port) { return Agree(Local(rank, 3, port), "aaaabbbbcccc", {}); }),
            (std::vector<int>{0, 0, 0}));
}

TEST(Rendezvous, ARankWithAnotherPlanIsNamedByAll) {
  for (int stranger = 0; stranger < 3; ++stranger) {
    const auto statuses = RunWorld(3, [&](int rank, int port) {
      return Agree(
          Local(rank, 3, port), rank == stranger ? "ddddeeeeffff" : "aaaabbbbcccc",
          {"rank " + std::to_string(stranger) + " on host" + std::to_string(stranger), "ddddeeeeffff", "aaaabbbbcccc"});
    });
    EXPECT_EQ(statuses, (std::vector<int>{14, 14, 14})) << stranger;
  }
}

TEST(Rendezvous, ARankOfAnotherRunIsNamedByAll) {
  const auto statuses = RunWorld(3, [&](int rank, int port) {
    Environment environment = Local(rank, 3, port);
    if (rank == 2) environment.nonce = "run0";
    return Agree(environment, "aaaabbbbcccc", {"rank 2 on host2", "run0"});
  });
  EXPECT_EQ(statuses, (std::vector<int>{14, 14, 14}));
}

TEST(Rendezvous, AMissingRankIsNamed) {
  const auto statuses = RunWorld(2, [](int rank, int port) {
    if (rank == 1) return 0;
    Environment environment = Local(rank, 2, port);
    auto store = OpenStore(environment);
    environment.timeout = std::chrono::milliseconds(500);
    const absl::Status status = AgreeOnPlan(environment, "aaaa", **store);
    return status.message().find("did not come: 1") != absl::string_view::npos ? 10 : 1;
  });
  EXPECT_EQ(statuses, (std::vector<int>{10, 0}));
}

class EnvironmentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"})
      unsetenv(name);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("MASTER_PORT", "1234", 1);
  }
  void Set(const char* rank, const char* world) {
    setenv("RANK", rank, 1), setenv("WORLD_SIZE", world, 1), setenv("LOCAL_RANK", "0", 1);
  }
};

TEST_F(EnvironmentTest, ReadsTheFieldsVariables) {
  Set("1", "4");
  const auto environment = ReadEnvironment();
  ASSERT_TRUE(environment.ok()) << environment.status();
  EXPECT_EQ(environment->rank, 1);
  EXPECT_EQ(environment->world_size, 4);
  EXPECT_EQ(environment->port, 1234);
}

TEST_F(EnvironmentTest, ReadsSlurmsVariables) {
  setenv("SLURM_PROCID", "2", 1), setenv("SLURM_NTASKS", "3", 1), setenv("SLURM_LOCALID", "0", 1);
  const auto environment = ReadEnvironment();
  ASSERT_TRUE(environment.ok()) << environment.status();
  EXPECT_EQ(environment->rank, 2);
}

TEST_F(EnvironmentTest, RefusesWhatIsUnclear) {
  EXPECT_FALSE(ReadEnvironment().ok());  // a missing RANK is an error, not rank 0
  for (const char* rank : {"", "-1", "1 ", "x", "4"}) {
    Set(rank, "4");
    EXPECT_FALSE(ReadEnvironment().ok()) << rank;
  }
  Set("1", "4");
  setenv("SLURM_PROCID", "2", 1);
  const auto environment = ReadEnvironment();
  ASSERT_FALSE(environment.ok());
  EXPECT_NE(environment.status().message().find("RANK=1 but SLURM_PROCID=2"), absl::string_view::npos);
}

}  // namespace
}  // namespace planwright::executor
