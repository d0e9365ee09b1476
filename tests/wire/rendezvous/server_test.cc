// The store over real sockets: what several clients do at once, and how it starts and ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "planner/wire/rendezvous/store_server.h"
#include "tests/wire/rendezvous/sockets.h"

namespace planwright::testing {
namespace {

using ::testing::HasSubstr;

TEST(StoreServer, EveryOperationOverASocket) {
  const auto server = StartServer();
  const auto one = ConnectTo(*server), other = ConnectTo(*server);
  EXPECT_TRUE(Ask(*one, StoreOp::kSet, {"a", "1", "b", std::string("\0\xff", 2)}).ok());
  EXPECT_EQ(Ask(*other, StoreOp::kGet, {"b", "a"})->fields, (std::vector<std::string>{std::string("\0\xff", 2), "1"}));
  EXPECT_EQ(Ask(*other, StoreOp::kCompareSet, {"a", "1", "2"})->fields.at(0), "2");
  EXPECT_EQ(Ask(*one, StoreOp::kAdd, {"a"}, 40)->number, 42);
  EXPECT_TRUE(Ask(*one, StoreOp::kAppend, {"a", "0"}).ok());
  EXPECT_EQ(ValueOf(*other, "a"), "420");
  EXPECT_EQ(Ask(*one, StoreOp::kDelete, {"a"})->number, 1);
  EXPECT_EQ(ValueOf(*other, "a"), "(none)");
  EXPECT_EQ(Ask(*one, StoreOp::kCount, {})->number, 1);
}

TEST(StoreServer, AWaitEndsWhenTheLastKeyComes) {
  const auto server = StartServer();
  const auto setter = ConnectTo(*server);
  std::atomic<int> got{0};
  std::vector<std::thread> waiters;
  for (int i = 0; i < 8; ++i) {
    waiters.emplace_back([&, i] {
      const auto client = ConnectTo(*server);
      // In other orders, so that they wait for other keys.
      std::vector<std::string> keys = {"x", "y", "z", "x"};
      std::rotate(keys.begin(), keys.begin() + i % 4, keys.end());
      const auto reply = Ask(*client, i % 2 == 0 ? StoreOp::kGet : StoreOp::kWait, keys);
      ASSERT_TRUE(reply.ok()) << reply.status();
      if (i % 2 == 0) {
        EXPECT_EQ(reply->fields.size(), 4u);
      }
      ++got;
    });
  }
  // x is there, then gone, and there again: only all together count.
  Ask(*setter, StoreOp::kSet, {"x", "1"}).IgnoreError();
  Ask(*setter, StoreOp::kDelete, {"x"}).IgnoreError();
  Ask(*setter, StoreOp::kSet, {"y", "1"}).IgnoreError();
  Ask(*setter, StoreOp::kSet, {"z", "1"}).IgnoreError();
  EXPECT_EQ(got, 0);
  Ask(*setter, StoreOp::kAdd, {"x"}, 1).IgnoreError();
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(got, 8);
}

TEST(StoreServer, CountsExactlyUnderManyThreads) {
  const auto server = StartServer();
  constexpr int kThreads = 12, kTimes = 200;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      const auto client = ConnectTo(*server);
      for (int n = 0; n < kTimes; ++n) ASSERT_TRUE(Ask(*client, StoreOp::kAdd, {"sum"}, 1).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ValueOf(*ConnectTo(*server), "sum"), std::to_string(kThreads * kTimes));
}

TEST(StoreServer, MovesLargeValuesAndRefusesTooLargeReplies) {
  const auto server = StartServer();
  const auto client = ConnectTo(*server);
  const std::string large(size_t{20} << 20, 'x');
  ASSERT_TRUE(Ask(*client, StoreOp::kSet, {"one", large}).ok());
  ASSERT_TRUE(Ask(*client, StoreOp::kSet, {"two", large}).ok());
  EXPECT_EQ(Ask(*client, StoreOp::kGet, {"two"})->fields.at(0), large);
  EXPECT_THAT(std::string(Ask(*client, StoreOp::kGet, {"one", "two"}).status().message()), HasSubstr("has 41943"));
  EXPECT_EQ(ValueOf(*client, "one").size(), large.size());  // the connection is still good
}

// A client that asks for megabytes and reads nothing holds up nobody and makes the store remember one reply.
TEST(StoreServer, AClientThatDoesNotReadHoldsUpNobody) {
  const auto server = StartServer();
  const auto good = ConnectTo(*server);
  ASSERT_TRUE(Ask(*good, StoreOp::kSet, {"large", std::string(size_t{20} << 20, 'x')}).ok());
  const Stranger lazy("127.0.0.1", server->port());
  const std::string nonce(kNonceBytes, 'n');
  lazy.Send(std::string(kStorePurpose.client_magic) + nonce);
  const std::string hello = lazy.Read(kMagicBytes + kNonceBytes + kProofBytes);
  lazy.Send(ClientProof(kStorePurpose, "the secret", nonce, hello.substr(kMagicBytes, kNonceBytes)));
  for (int i = 0; i < 100; ++i) lazy.Send(*FrameOf({static_cast<uint8_t>(StoreOp::kGet), 0, {"large"}}));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Ask(*good, StoreOp::kAdd, {"n"}, 1)->number, i + 1);
  EXPECT_EQ(lazy.Read(4).size(), 4u);
}

TEST(StoreServer, APortThatIsTakenAndAnAddressThatIsNotHere) {
  const auto server = StartServer();
  const absl::Status taken = StoreServer::Start("127.0.0.1", server->port(), "s").status();
  EXPECT_TRUE(absl::IsUnavailable(taken));
  EXPECT_THAT(std::string(taken.message()), HasSubstr("127.0.0.1:" + std::to_string(server->port())));
  EXPECT_THAT(std::string(taken.message()), HasSubstr("in use"));
  EXPECT_THAT(std::string(StoreServer::Start("198.51.100.77", 0, "s").status().message()),
              HasSubstr("this machine does not have that address"));
  EXPECT_TRUE(absl::IsInvalidArgument(StoreServer::Start("node1", 0, "s").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(StoreServer::Start("127.0.0.1", 65536, "s").status()));
}

// Another address of this machine does not reach it.
TEST(StoreServer, ListensAtItsAddressAlone) {
  const auto server = StartServer();
  const auto there =
      StoreClient::Connect({"other", {"127.0.0.2"}, server->port()}, "the secret", std::chrono::milliseconds(1));
  EXPECT_THAT(std::string(there.status().message()), HasSubstr("refused"));
}

TEST(StoreServer, ItsPortIsFreeWhenItIsGone) {
  int port = 0;
  {
    const auto server = StartServer();
    port = server->port();
    const auto client = ConnectTo(*server);
    EXPECT_TRUE(Ask(*client, StoreOp::kSet, {"a", "1"}).ok());
  }
  const auto next = StartServer("another secret", port);
  EXPECT_EQ(ValueOf(*ConnectTo(*next, "another secret"), "a"), "(none)");
}

// The launcher reads signals itself: none may end up in the thread of the store.
TEST(StoreServer, ItsThreadBlocksAllSignals) {
  const auto threads_that_block_all = [] {
    int count = 0;
    for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
      std::ifstream file(thread.path() / "status");
      for (std::string line; std::getline(file, line);) {
        if (line.rfind("SigBlk:", 0) != 0) continue;
        // All of signals 1 to 31 but SIGKILL and SIGSTOP, which cannot be blocked.
        constexpr unsigned long kAll = 0x7fffffff & ~(1UL << (SIGKILL - 1)) & ~(1UL << (SIGSTOP - 1));
        count += (std::stoul(line.substr(8), nullptr, 16) & kAll) == kAll ? 1 : 0;
      }
    }
    return count;
  };
  const int before = threads_that_block_all();
  const auto server = StartServer();
  EXPECT_EQ(threads_that_block_all(), before + 1);
  sigset_t own;
  pthread_sigmask(SIG_SETMASK, nullptr, &own);
  EXPECT_EQ(sigismember(&own, SIGTERM), 0);
}

}  // namespace
}  // namespace planwright::testing
