// The client against servers that are there, are not, are something else, or go away.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "planner/wire/rendezvous/store_client.h"
#include "tests/wire/rendezvous/sockets.h"

namespace planwright::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A port at which nobody listens: bound, so that nobody else takes it.
class ClosedPort {
 public:
  ClosedPort() : socket_(OpenTcpSocket(AF_INET)) {
    const SocketAddress any = *SocketAddress::Parse("127.0.0.1", 0);
    EXPECT_EQ(bind(socket_, any.pointer(), any.size()), 0);
  }
  ~ClosedPort() { close(socket_); }
  int port() const { return SocketAddress::OfThisEnd(socket_).port(); }
  int socket() const { return socket_; }

 private:
  const int socket_;
};

std::string ConnectError(const Endpoint& endpoint, milliseconds patience,
                         absl::StatusCode code = absl::StatusCode::kUnavailable) {
  const absl::Status status = StoreClient::Connect(endpoint, "the secret", patience).status();
  EXPECT_EQ(status.code(), code) << status;
  const std::string message(status.message());
  EXPECT_THAT(message, AllOf(HasSubstr(endpoint.text()), Not(HasSubstr("\n"))));
  return message;
}

TEST(StoreClient, APortThatRefusesIsTriedUntilTheTimeIsOver) {
  const ClosedPort closed;
  EXPECT_THAT(ConnectError({"node1", {"127.0.0.1"}, closed.port()}, milliseconds(300)),
              AllOf(HasSubstr("within 0.3 s"), HasSubstr("refused")));
}

TEST(StoreClient, AStoreThatComesLaterIsReached) {
  std::unique_ptr<StoreServer> server;
  int port = 0;
  {
    const ClosedPort closed;
    port = closed.port();
  }
  std::thread later([&] {
    std::this_thread::sleep_for(milliseconds(300));
    server = StartServer("the secret", port);
  });
  EXPECT_TRUE(StoreClient::Connect({"here", {"127.0.0.1"}, port}, "the secret", milliseconds(kPatience)).ok());
  later.join();
}

// Listens and accepts nothing: the kernel connects, and nobody speaks.
TEST(StoreClient, AServerThatSaysNothingIsNotWaitedForEndlessly) {
  const ClosedPort silent;
  ASSERT_EQ(listen(silent.socket(), 16), 0);
  EXPECT_THAT(ConnectError({"node1", {"127.0.0.1"}, silent.port()}, milliseconds(300)), HasSubstr("does not answer"));
}

// The first address of a host is silent: the second one gets its share of the time.
TEST(StoreClient, TriesEveryAddress) {
  const auto server = StartServer();
  const ClosedPort silent;
  const Endpoint endpoint{"node1", {"127.0.0.2", "127.0.0.1"}, server->port()};
  EXPECT_TRUE(StoreClient::Connect(endpoint, "the secret", milliseconds(kPatience)).ok());
}

TEST(StoreClient, AnotherProgramIsNotTakenForAStore) {
  ClosedPort port;
  ASSERT_EQ(listen(port.socket(), 16), 0);
  std::thread ssh([&] {
    pollfd watched = {.fd = port.socket(), .events = POLLIN, .revents = 0};
    poll(&watched, 1, -1);
    const Stranger connection(accept(port.socket(), nullptr, nullptr));
    connection.Send("SSH-2.0-OpenSSH_9.2\r\n");
    connection.Read(1000);
  });
  EXPECT_THAT(ConnectError({"node1", {"127.0.0.1"}, port.port()}, kPatience), HasSubstr("is not the store of a run"));
  ssh.join();
}

TEST(StoreClient, AStoreOfAnotherRunIsNamed) {
  const auto server = StartServer("another secret");
  EXPECT_THAT(ConnectError(EndpointOf(*server), kPatience, absl::StatusCode::kFailedPrecondition),
              HasSubstr("belongs to another run"));
}

// One that claims to be the store, without the secret, learns nothing from a client, and is not believed.
TEST(StoreClient, AnImpostorGetsNoProof) {
  ClosedPort port;
  ASSERT_EQ(listen(port.socket(), 16), 0);
  std::string heard;
  std::thread impostor([&] {
    pollfd watched = {.fd = port.socket(), .events = POLLIN, .revents = 0};
    poll(&watched, 1, -1);
    const Stranger connection(accept(port.socket(), nullptr, nullptr));
    heard = connection.Read(kMagicBytes + kNonceBytes);
    connection.Send(std::string(kStorePurpose.server_magic) + std::string(kNonceBytes + kProofBytes, 'x'));
    heard += connection.Read(1000);
  });
  ConnectError({"node1", {"127.0.0.1"}, port.port()}, kPatience, absl::StatusCode::kFailedPrecondition);
  impostor.join();
  EXPECT_EQ(heard.size(), kMagicBytes + kNonceBytes);
}

TEST(StoreClient, AWaitThatIsTooLongNamesTheKeysAndLeavesTheConnectionGood) {
  const auto server = StartServer();
  const auto client = ConnectTo(*server);
  for (int i = 0; i < 3; ++i) {
    const absl::Status status = Ask(*client, StoreOp::kWait, {"hello/7", "hello/8"}, 0, milliseconds(20)).status();
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("waited 0.02 s"), HasSubstr("'hello/7' or one of 1 other keys")));
    EXPECT_EQ(Ask(*client, StoreOp::kAdd, {"n"}, 1)->number, i + 1);
  }
  EXPECT_TRUE(Ask(*client, StoreOp::kSet, {"hello/7", "", "hello/8", ""}).ok());
  EXPECT_TRUE(Ask(*client, StoreOp::kWait, {"hello/7", "hello/8"}, 0, milliseconds(kPatience)).ok());
}

// Keys come while waits end: whoever wins, each question gets its own answer.
TEST(StoreClient, KeysThatComeAtTheLastMomentConfuseNothing) {
  const auto server = StartServer();
  const auto setter = ConnectTo(*server), waiter = ConnectTo(*server);
  int came = 0, late = 0;
  for (int i = 0; i < 300; ++i) {
    const std::string key = "key" + std::to_string(i);
    std::thread sets([&] { EXPECT_TRUE(Ask(*setter, StoreOp::kSet, {key, key}).ok()); });
    const auto reply = Ask(*waiter, StoreOp::kGet, {key}, 0, milliseconds(i % 2));
    sets.join();
    ++(reply.ok() ? came : late);
    if (reply.ok()) {
      EXPECT_EQ(reply->fields, std::vector<std::string>{key});
    } else {
      EXPECT_TRUE(absl::IsDeadlineExceeded(reply.status())) << reply.status();
    }
    EXPECT_EQ(Ask(*waiter, StoreOp::kGet, {key})->fields, std::vector<std::string>{key});
  }
  EXPECT_GT(came, 0);
}

TEST(StoreClient, AStoreThatGoesAwayIsNoticedAtOnceAndStaysGone) {
  auto server = StartServer();
  const std::string endpoint = EndpointOf(*server).text();
  const auto client = ConnectTo(*server);
  std::thread ends([&] {
    std::this_thread::sleep_for(milliseconds(100));
    server.reset();
  });
  const absl::Status status = Ask(*client, StoreOp::kGet, {"never"}).status();
  ends.join();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("the store at " + endpoint + " is lost: "));
  EXPECT_EQ(Ask(*client, StoreOp::kCount, {}).status(), status);
}

TEST(StoreClient, SaysWhatTheStoreRefuses) {
  const auto server = StartServer();
  const auto client = ConnectTo(*server);
  EXPECT_TRUE(Ask(*client, StoreOp::kSet, {"n", "many"}).ok());
  EXPECT_THAT(std::string(Ask(*client, StoreOp::kAdd, {"n"}, 1).status().message()), HasSubstr("is no number"));
  EXPECT_TRUE(
      absl::IsResourceExhausted(Ask(*client, StoreOp::kSet, {"n", std::string(kMostFrameBytes, 'x')}).status()));
  EXPECT_EQ(ValueOf(*client, "n"), "many");
}

TEST(StoreClient, HasTheAddressOfItsOwnEnd) {
  const auto server = StartServer();
  EXPECT_EQ(ConnectTo(*server)->local_address(), "127.0.0.1");
}

TEST(WaitUntilReachable, SaysWhichAddressAnswers) {
  const auto server = StartServer();
  EXPECT_EQ(*WaitUntilReachable({"here", {"127.0.0.2", "127.0.0.1"}, server->port()}, kPatience), "127.0.0.1");
  const ClosedPort closed;
  EXPECT_THAT(
      std::string(WaitUntilReachable({"here", {"127.0.0.1"}, closed.port()}, milliseconds(50)).status().message()),
      HasSubstr("cannot reach here:"));
}

}  // namespace
}  // namespace planwright::testing
