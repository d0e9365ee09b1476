// A server in this thread, and clients and strangers at its port: who is let in, how much of each is held, and whose
// turn it is.
#include "planner/wire/connection/proven_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <map>
#include <random>
#include <thread>

#include "planner/wire/connection/proven_client.h"
#include "tests/support/eventually.h"
#include "tests/wire/connection/stranger.h"

namespace planwright::testing {
namespace {

using std::chrono::milliseconds;

constexpr Purpose kServerTest = {"planwright test", "TESTASK\1", "TESTSRV\1", "the test"};
// The same first bytes, and another text.
constexpr Purpose kAnother = {"planwright other test", "TESTASK\1", "TESTSRV\1", "the other test"};
constexpr size_t kHelloBytes = kMagicBytes + kNonceBytes, kAnswerBytes = kHelloBytes + kProofBytes;
constexpr size_t kMostIn = 1 << 20, kMostUnsent = 1 << 16;

class ProvenServerTest : public ::testing::Test, protected ProvenServer::User {
 protected:
  void Listen(milliseconds patience = kPatience) {
    absl::StatusOr<std::unique_ptr<ProvenServer>> server = ProvenServer::Listen(
        "127.0.0.1", 0,
        {.purpose = kServerTest, .secret = "s", .patience = patience, .most_in = kMostIn, .most_unsent = kMostUnsent});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  void Proved(ProvenServer::Id id, const std::string& address) override {
    EXPECT_EQ(address, "127.0.0.1");
    taken_[id] = 0;
  }
  std::string Take(ProvenServer::Id id, std::string& in) override {
    if (leaves_) return "";
    taken_[id] += in.size();
    if (in.find('!') != std::string::npos) return "an exclamation";
    in.clear();
    return "";
  }
  void Closed(ProvenServer::Id id, const std::string& why) override { closed_[id] = why; }

  // One round, when there is something to do.
  void Round() {
    pollfd watched = {server_->fd(), POLLIN, 0};
    poll(&watched, 1, 5);
    server_->Serve(*this);
    most_held_ = std::max(most_held_, server_->bytes_held());
  }
  template <typename Condition>
  void ServeUntil(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!condition() && std::chrono::steady_clock::now() < end) Round();
    EXPECT_TRUE(condition());
  }
  // A client of a thread of its own, as this one serves it.
  ByteStream Connect() {
    absl::StatusOr<ByteStream> stream;
    std::atomic<bool> done = false;
    std::thread client([&] {
      stream = ConnectOnce("127.0.0.1", server_->port(), kServerTest, "s", kPatience);
      done = true;
    });
    ServeUntil([&] { return done.load(); });
    client.join();
    EXPECT_TRUE(stream.ok()) << stream.status();
    return stream.ok() ? *std::move(stream) : ByteStream();
  }
  Stranger Come() const { return {"127.0.0.1", server_->port()}; }

  std::unique_ptr<ProvenServer> server_;
  std::map<ProvenServer::Id, size_t> taken_;
  std::map<ProvenServer::Id, std::string> closed_;
  size_t most_held_ = 0;
  bool leaves_ = false;
};

// Each of them sends as much as it can. None is read beyond its part of the handshake.
TEST_F(ProvenServerTest, EndlessStrangersAreHeldToTheirHandshake) {
  Listen();
  const std::string hello = std::string(kServerTest.client_magic) + std::string(kNonceBytes, 'n');
  std::atomic<size_t> sent = 0, ended = 0;
  std::vector<std::thread> strangers;
  for (const std::string& first : {std::string(), hello, std::string(kServerTest.client_magic)}) {
    for (const std::string& text : {std::string("{\"kind\":\"x\"}\n"), std::string(70000, '['), std::string(1, '\0')}) {
      strangers.emplace_back([&, first, text] {
        const Stranger stranger = Come();
        stranger.Send(first);
        sent += SendEndlessly(stranger, text);
        ++ended;
      });
    }
  }
  ServeUntil([&] { return ended == strangers.size(); });
  for (std::thread& stranger : strangers) stranger.join();
  EXPECT_LT(sent, strangers.size() * kWhatTheKernelHolds);
  EXPECT_LE(most_held_, strangers.size() * (kHelloBytes + kAnswerBytes));
  ServeUntil([&] { return server_->strangers() == 0; });
  EXPECT_TRUE(taken_.empty());
}

TEST_F(ProvenServerTest, AnyBytesLetNobodyIn) {
  Listen();
  std::mt19937 random(11);
  for (int round = 0; round < 3000; ++round) {
    const Stranger stranger = Come();
    std::string bytes(random() % 200, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    if (random() % 2 == 0) bytes = std::string(kServerTest.client_magic) + bytes;
    stranger.Send(bytes);
    Round();
  }
  ServeUntil([&] { return server_->strangers() == 0; });
  EXPECT_TRUE(taken_.empty());
  EXPECT_LE(most_held_, 3000 * (kHelloBytes + kAnswerBytes));
  Connect();
  EXPECT_EQ(taken_.size(), 1u);
}

TEST_F(ProvenServerTest, ASlowStrangerIsClosed) {
  Listen(milliseconds(200));
  const Stranger silent = Come(), half = Come(), greeted = Come();
  half.Send(std::string(kServerTest.client_magic) + "nonc");
  greeted.Send(std::string(kServerTest.client_magic) + std::string(kNonceBytes, 'n'));
  ServeUntil([&] { return server_->strangers() == 3; });
  ServeUntil([&] { return server_->strangers() == 0; });
  EXPECT_TRUE(silent.IsClosed());
  EXPECT_TRUE(half.IsClosed());
  EXPECT_EQ(greeted.Read(1000).size(), kAnswerBytes);
}

// A proof of one purpose proves nothing for another one, though the secret is the same.
TEST_F(ProvenServerTest, AProofIsOfOnePurpose) {
  Listen();
  absl::Status status;
  std::atomic<bool> done = false;
  std::thread client([&] {
    status = ConnectOnce("127.0.0.1", server_->port(), kAnother, "s", kPatience).status();
    done = true;
  });
  ServeUntil([&] { return done.load(); });
  client.join();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  // And one that skips that check.
  const Stranger stranger = Come();
  const std::string nonce(kNonceBytes, 'n');
  stranger.Send(std::string(kAnother.client_magic) + nonce);
  ServeUntil([&] { return !stranger.IsOpen(); });
  const std::string of_server = stranger.Read(kAnswerBytes).substr(kMagicBytes, kNonceBytes);
  stranger.Send(ClientProof(kAnother, "s", nonce, of_server));
  ServeUntil([&] { return server_->strangers() == 0; });
  EXPECT_TRUE(stranger.IsClosed());
  EXPECT_TRUE(taken_.empty());
}

// A client that floods gets one turn in each round, as the others do.
TEST_F(ProvenServerTest, AFloodIsReadATurnAtATime) {
  Listen();
  ByteStream flood = Connect(), quiet = Connect();
  flood.Add(std::string(size_t{8} << 20, 'x'));
  ASSERT_TRUE(flood.Flush().ok());
  quiet.Add("hello");
  ASSERT_TRUE(quiet.Flush().ok());
  const ProvenServer::Id first = taken_.begin()->first, second = taken_.rbegin()->first;
  ServeUntil([&] {
    EXPECT_TRUE(flood.Flush().ok());
    const size_t before = taken_[first];
    Round();
    EXPECT_LE(taken_[first] - before, kBytesOfATurn);
    return taken_[second] == 5;
  });
  EXPECT_LT(taken_[first], size_t{8} << 20);
}

// What its user leaves is held up to a bound. The rest stays where it comes from.
TEST_F(ProvenServerTest, WhatIsNotUsedIsHeldUpToABound) {
  Listen();
  ByteStream client = Connect();
  leaves_ = true;
  client.Add(std::string(size_t{32} << 20, 'x'));
  size_t unsent = 0;
  ServeUntil([&] {
    EXPECT_TRUE(client.Flush().ok());
    return std::exchange(unsent, client.unsent()) == client.unsent() && server_->bytes_held() == kMostIn;
  });
  EXPECT_EQ(most_held_, kMostIn);
  leaves_ = false;
  server_->Retake(taken_.begin()->first, *this);
  ServeUntil([&] {
    EXPECT_TRUE(client.Flush().ok());
    return taken_.begin()->second == size_t{32} << 20;
  });
  EXPECT_EQ(most_held_, kMostIn);
}

// Who does not read what it gets is not read from.
TEST_F(ProvenServerTest, WhoDoesNotReadIsNotReadFrom) {
  Listen();
  ByteStream client = Connect();
  const ProvenServer::Id id = taken_.begin()->first;
  server_->Send(id, std::string(size_t{32} << 20, 'x'));
  ASSERT_TRUE(server_->HasUnsent(id));
  client.Add("hello");
  ASSERT_TRUE(client.Flush().ok());
  for (int i = 0; i < 20; ++i) Round();
  EXPECT_EQ(taken_[id], 0u);
  ServeUntil([&] {
    EXPECT_TRUE(client.Receive(kBytesOfATurn).ok());
    client.in().clear();
    return taken_[id] == 5;
  });
}

TEST_F(ProvenServerTest, WhoSendsWhatIsNoMessageIsClosed) {
  Listen();
  ByteStream client = Connect();
  client.Add("what!");
  ASSERT_TRUE(client.Flush().ok());
  ServeUntil([&] { return !closed_.empty(); });
  EXPECT_EQ(closed_.begin()->second, "an exclamation");
  EXPECT_EQ(server_->bytes_held(), 0u);
}

TEST_F(ProvenServerTest, AUserHearsOfAnEndOnceAndNotOfItsOwn) {
  Listen();
  { const ByteStream gone = Connect(); }
  ServeUntil([&] { return closed_.size() == 1; });
  const ByteStream other = Connect();
  server_->Close(taken_.rbegin()->first);
  for (int i = 0; i < 3; ++i) Round();
  EXPECT_EQ(closed_.size(), 1u);
}

}  // namespace
}  // namespace planwright::testing
