#include "executor/communication/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "executor/communication/agreement.h"
#include "planner/wire/rendezvous/store_server.h"
#include "tests/executor/communication/world.h"
#include "tests/support/eventually.h"

namespace planwright::executor {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

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

// The outcome of AgreeOnPlan, and then of AgreeOnData, as an exit status: 0 agreed; 14 refused, and the message
// contains all of `names`; 3 refused without them; 4 anything else.
int Agree(Environment environment, const std::string& digest, const std::vector<std::string>& names,
          const std::string& data = "") {
  auto store = OpenStore(environment);
  if (!store.ok()) return 4;
  absl::Status status = AgreeOnPlan(environment, digest, **store);
  if (status.ok()) status = AgreeOnData(environment, data, **store);
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

// A rank that is ready before the others stays: they may still receive what it has sent.
TEST(Rendezvous, NoRankLeavesBeforeAllAreReady) {
  const auto statuses = RunWorld(3, [](int rank, int port) {
    Environment mine = Local(rank, 3, port);
    auto store = OpenStore(mine);
    if (!store.ok()) return 4;
    if (rank == 2) {
      while ((*store)->add("planwright/end", 0) < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::this_thread::sleep_for(std::chrono::milliseconds(100));  // enough for one that would not wait
      if ((*store)->add("left", 0) != 0) return 1;
    }
    WaitForAll(mine, "end", testing::kPatience, **store);
    if (rank != 0) (*store)->add("left", 1);
    while (rank == 0 && (*store)->add("left", 0) < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return 0;
  });
  EXPECT_EQ(statuses, (std::vector<int>{0, 0, 0}));
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

// The first rank reads no samples, and has no digest that could differ.
TEST(Rendezvous, ARankWithOtherDataIsNamedByAll) {
  const std::string ours = "0123456789abcdef", other = "fedcba9876543210";
  const auto statuses = [&](const std::vector<std::string>& data, const std::vector<std::string>& names) {
    return RunWorld(4, [&](int rank, int port) {
      return Agree(Local(rank, 4, port), "aaaabbbbcccc", names, data[static_cast<size_t>(rank)]);
    });
  };
  EXPECT_EQ(statuses({"", ours, ours, ours}, {}), std::vector<int>(4, 0));
  const std::vector<std::string> both = {"expected data 0123456789ab", "(data fedcba987654)", "plan data index"};
  std::vector<std::string> names = both;
  names.push_back("rank 1 on host1 (data");
  EXPECT_EQ(statuses({"", other, ours, ours}, names), std::vector<int>(4, 14));
  names.back() = "found rank 2 on host2 (data";
  EXPECT_EQ(statuses({"", ours, other, ""}, names), std::vector<int>(4, 14)) << "on a tie the first is right";
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

// The launcher serves: rank 0 comes late and leaves first, and nobody minds.
TEST(Rendezvous, AStoreOfTheLauncherOutlivesRank0) {
  const auto server = StoreServer::Start("127.0.0.1", 0, "secret");
  ASSERT_TRUE(server.ok());
  const auto local = [&](int rank) {
    Environment environment = Local(rank, 3, (*server)->port());
    environment.store_host = StoreHost::kLauncher;
    environment.secret = "secret";
    return environment;
  };
  EXPECT_EQ(RunWorld(3,
                     [&](int rank, int) {
                       if (rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(200));
                       Environment environment = local(rank);
                       auto store = OpenStore(environment);
                       if (!store.ok() || environment.own_address != "127.0.0.1") return 1;
                       if (!AgreeOnPlan(environment, "aaaa", **store).ok()) return 2;
                       WaitForAll(environment, "end", testing::kPatience, **store);
                       if (rank == 0) return 0;
                       std::this_thread::sleep_for(std::chrono::milliseconds(200));
                       return (*store)->add("late", 1) > 0 && ConnectToStore(environment).ok() ? 0 : 3;
                     }),
            (std::vector<int>{0, 0, 0}));
}

// torchrun's agent has a store of its own at the port. It may have run the ranks before.
TEST(Rendezvous, RanksOfTorchrunMeetBesideTheStoreOfItsAgent) {
  setenv("TORCHELASTIC_RESTART_COUNT", "1", 1);
  const auto statuses = RunWorld(3, [](int rank, int port) {
    Environment environment = Local(rank, 3, port);
    environment.store_host = StoreHost::kTorchrun;
    std::optional<c10d::TCPStore> agent;
    if (rank == 0) {
      c10d::TCPStoreOptions options;
      options.port = static_cast<uint16_t>(port);
      options.isServer = true;
      options.waitWorkers = false;
      agent.emplace("127.0.0.1", options);
      agent->set("planwright/run1/0/port", std::vector<uint8_t>{'1'});  // of an attempt that is over
    }
    auto store = OpenStore(environment);
    if (!store.ok()) throw std::runtime_error(std::string(store.status().message()));
    EXPECT_NE(environment.port, port);
    EXPECT_TRUE(AgreeOnPlan(environment, "aaaa", **store).ok());
    EXPECT_TRUE(ConnectToStore(environment).ok());
    WaitForAll(environment, "end", testing::kPatience, **store);
    return 0;
  });
  unsetenv("TORCHELASTIC_RESTART_COUNT");
  EXPECT_EQ(statuses, (std::vector<int>{0, 0, 0}));
}

// Nothing of c10d is printed: one line says where and why.
TEST(Rendezvous, AStoreThatIsNotThereIsOneLine) {
  Environment environment = Local(1, 2, 1);  // nobody may listen at port 1 but root, and nobody does
  environment.timeout = std::chrono::milliseconds(300);
  for (StoreHost host : {StoreHost::kLauncher, StoreHost::kRank0, StoreHost::kTorchrun}) {
    environment.store_host = host;
    const absl::Status refused = OpenStore(environment).status();
    EXPECT_TRUE(absl::IsUnavailable(refused));
    EXPECT_THAT(std::string(refused.message()),
                AllOf(HasSubstr("127.0.0.1:1 within 0.3 s"), HasSubstr("refused"), Not(HasSubstr("\n"))));
    Environment elsewhere = environment;
    elsewhere.address = "no-such-host.invalid";
    const absl::Status unknown = OpenStore(elsewhere).status();
    EXPECT_TRUE(absl::IsUnavailable(unknown));
    EXPECT_THAT(std::string(unknown.message()), AllOf(HasSubstr("MASTER_ADDR: the host 'no-such-host.invalid'"),
                                                      HasSubstr("not found"), Not(HasSubstr("\n"))));
  }
}

TEST(Rendezvous, Rank0CannotServeAtAnAddressThatIsNotIts) {
  Environment environment = Local(0, 2, 29500);
  environment.address = "198.51.100.77";
  const absl::Status status = OpenStore(environment).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("198.51.100.77:29500"), HasSubstr("MASTER_ADDR must be")));
}

TEST(Rendezvous, ARankOfAnotherRunIsRefusedByTheStore) {
  const auto server = StoreServer::Start("127.0.0.1", 0, "of this run");
  ASSERT_TRUE(server.ok());
  Environment environment = Local(1, 2, (*server)->port());
  environment.secret = "of another run";
  EXPECT_TRUE(absl::IsFailedPrecondition(OpenStore(environment).status()));
}

class EnvironmentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "SLURM_PROCID", "SLURM_NTASKS",
                             "SLURM_LOCALID", "PLANWRIGHT_NONCE", "PLANWRIGHT_SECRET", "TORCHELASTIC_RUN_ID",
                             "TORCHELASTIC_USE_AGENT_STORE", "GLOO_SOCKET_IFNAME"})
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

TEST_F(EnvironmentTest, TheLaunchersSecretSaysThatItServes) {
  Set("1", "4");
  setenv("PLANWRIGHT_NONCE", "run1", 1), setenv("PLANWRIGHT_SECRET", "s", 1);
  setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);  // of a torchrun around the launcher
  const auto environment = ReadEnvironment();
  ASSERT_TRUE(environment.ok()) << environment.status();
  EXPECT_EQ(environment->store_host, StoreHost::kLauncher);
  EXPECT_EQ(environment->secret, "s");
  EXPECT_EQ(environment->own_address, "");
}

TEST_F(EnvironmentTest, WithoutASecretTheNameOfTheRunKeepsRunsApart) {
  Set("1", "4");
  const std::string none = ReadEnvironment()->secret;
  EXPECT_EQ(ReadEnvironment()->store_host, StoreHost::kRank0);
  setenv("TORCHELASTIC_RUN_ID", "job7", 1), setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
  EXPECT_EQ(ReadEnvironment()->store_host, StoreHost::kTorchrun);
  EXPECT_EQ(ReadEnvironment()->nonce, "job7");
  EXPECT_NE(ReadEnvironment()->secret, none);
  setenv("TORCHELASTIC_USE_AGENT_STORE", "False", 1);
  EXPECT_EQ(ReadEnvironment()->store_host, StoreHost::kRank0);
}

TEST_F(EnvironmentTest, TheInterfaceOfGlooGivesTheOwnAddress) {
  Set("1", "4");
  setenv("GLOO_SOCKET_IFNAME", "lo", 1);
  EXPECT_EQ(ReadEnvironment()->own_address, "127.0.0.1");
  setenv("GLOO_SOCKET_IFNAME", "nosuch0", 1);
  const absl::Status status = ReadEnvironment().status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("GLOO_SOCKET_IFNAME: there is no network interface 'nosuch0'"));
}

TEST_F(EnvironmentTest, APortMustBeOne) {
  Set("1", "4");
  for (const char* port : {"0", "65536", "-1", "http"}) {
    setenv("MASTER_PORT", port, 1);
    EXPECT_TRUE(absl::IsInvalidArgument(ReadEnvironment().status())) << port;
  }
}

}  // namespace
}  // namespace planwright::executor
