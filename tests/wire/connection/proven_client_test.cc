// A client before programs that only pretend to be its server. tests/wire/rendezvous/client_test.cc has the rest.
#include "planner/wire/connection/proven_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/support/eventually.h"
#include "tests/wire/connection/stranger.h"

namespace planwright::testing {
namespace {

using ::testing::HasSubstr;

constexpr Purpose kClientTest = {"planwright test", "TESTASK\2", "TESTSRV\2", "the test"};

// Accepts one connection, answers with `first`, and then without an end. Returns what the client says, and how many
// bytes the impostor could send before it was left.
absl::Status AskImpostor(const std::string& first, size_t& sent) {
  const int listening = OpenTcpSocket(AF_INET);
  const SocketAddress any = *SocketAddress::Parse("127.0.0.1", 0);
  EXPECT_EQ(bind(listening, any.pointer(), any.size()), 0);
  EXPECT_EQ(listen(listening, 1), 0);
  std::thread impostor([&] {
    pollfd watched = {.fd = listening, .events = POLLIN, .revents = 0};
    poll(&watched, 1, -1);
    const Stranger connection(accept(listening, nullptr, nullptr));
    connection.Send(first);
    sent = SendEndlessly(connection, "{\"kind\":\"head\"}\n");
  });
  const int port = SocketAddress::OfThisEnd(listening).port();
  const absl::Status status = ConnectOnce("127.0.0.1", port, kClientTest, "s", kPatience).status();
  impostor.join();
  close(listening);
  return status;
}

TEST(ProvenClient, AnEndlessImpostorIsLeft) {
  size_t sent = 0;
  const absl::Status no_magic = AskImpostor("", sent);
  EXPECT_TRUE(absl::IsInvalidArgument(no_magic)) << no_magic;
  EXPECT_LT(sent, kWhatTheKernelHolds);
  const absl::Status no_proof = AskImpostor(std::string(kClientTest.server_magic), sent);
  EXPECT_TRUE(absl::IsFailedPrecondition(no_proof)) << no_proof;
  EXPECT_LT(sent, kWhatTheKernelHolds);
}

TEST(ProvenClient, AnotherVersionIsNamed) {
  size_t sent = 0;
  EXPECT_THAT(std::string(AskImpostor("TESTSRV\1", sent).message()), HasSubstr("another version of Planwright"));
}

}  // namespace
}  // namespace planwright::testing
