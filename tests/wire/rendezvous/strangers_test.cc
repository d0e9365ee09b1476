// Strangers at the port of a store: garbage, half a handshake, a handshake of another run or of yesterday, and
// thousands who say nothing. None of them changes a key, and the ranks of the run come in all the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <fstream>
#include <random>
#include <thread>

#include "planner/wire/connection/proven_server.h"
#include "tests/wire/rendezvous/sockets.h"

namespace planwright::testing {
namespace {

constexpr size_t kHelloBytes = kMagicBytes + kNonceBytes;

class Strangers : public ::testing::Test {
 protected:
  Strangers() : server_(StartServer()), client_(ConnectTo(*server_)) {
    EXPECT_TRUE(Ask(*client_, StoreOp::kSet, {"key", "value"}).ok());
  }
  // Nothing has changed, for those who were there and for those who come.
  void ExpectUntouched() {
    EXPECT_EQ(ValueOf(*client_, "key"), "value");
    EXPECT_EQ(Ask(*ConnectTo(*server_), StoreOp::kCount, {})->number, 1);
  }
  Stranger Come() const { return {"127.0.0.1", server_->port()}; }

  const std::string nonce_ = std::string(kNonceBytes, 'n');
  std::unique_ptr<StoreServer> server_;
  std::unique_ptr<StoreClient> client_;
};

const std::string kSetKey = *FrameOf({static_cast<uint8_t>(StoreOp::kSet), 0, {"key", "stolen"}});

TEST_F(Strangers, AreClosedAtTheFirstWrongByte) {
  for (const std::string& bytes :
       {std::string("G"), std::string("GET / HTTP/1.1\r\n\r\n"), std::string("\0", 1), std::string("PWASK\r\n\1"),
        std::string(kStorePurpose.server_magic), kSetKey, std::string("PWASK\n")}) {
    const Stranger stranger = Come();
    stranger.Send(bytes);
    EXPECT_TRUE(stranger.IsClosed()) << bytes;
  }
  ExpectUntouched();
}

TEST_F(Strangers, AreClosedAtEachWrongByteOfTheMagic) {
  for (size_t i = 0; i < kMagicBytes; ++i) {
    const Stranger stranger = Come();
    std::string magic(kStorePurpose.client_magic.substr(0, i + 1));
    magic[i] ^= 1;
    stranger.Send(magic);
    EXPECT_TRUE(stranger.IsClosed()) << i;
  }
}

TEST_F(Strangers, HearNothingButAProofTheyCannotUse) {
  const Stranger stranger = Come();
  stranger.Send(std::string(kStorePurpose.client_magic) + nonce_);
  const std::string hello = stranger.Read(kHelloBytes + kProofBytes);
  ASSERT_EQ(hello.size(), kHelloBytes + kProofBytes);
  const std::string of_server = hello.substr(kMagicBytes, kNonceBytes);
  EXPECT_EQ(hello.substr(kHelloBytes), ServerProof(kStorePurpose, "the secret", nonce_, of_server));
  // What the server has proved with cannot be sent back to it, with whatever request behind it.
  stranger.Send(hello.substr(kHelloBytes) + kSetKey);
  EXPECT_TRUE(stranger.IsClosed());
  ExpectUntouched();
}

TEST_F(Strangers, WithAWrongSecretAreClosed) {
  for (const char* secret : {"", "the secre", "the secret ", "THE SECRET"}) {
    const Stranger stranger = Come();
    stranger.Send(std::string(kStorePurpose.client_magic) + nonce_);
    const std::string hello = stranger.Read(kHelloBytes + kProofBytes);
    stranger.Send(ClientProof(kStorePurpose, secret, nonce_, hello.substr(kMagicBytes, kNonceBytes)) + kSetKey);
    EXPECT_TRUE(stranger.IsClosed()) << secret;
  }
  ExpectUntouched();
}

// What a rank of the run sent before does not open the store a second time.
TEST_F(Strangers, CannotReplayAHandshake) {
  std::string recorded;
  {
    const Stranger rank = Come();
    rank.Send(std::string(kStorePurpose.client_magic) + nonce_);
    const std::string hello = rank.Read(kHelloBytes + kProofBytes);
    recorded = ClientProof(kStorePurpose, "the secret", nonce_, hello.substr(kMagicBytes, kNonceBytes));
    rank.Send(recorded + *FrameOf({static_cast<uint8_t>(StoreOp::kCount), 0, {}}));
    EXPECT_EQ(rank.Read(3).size(), 3u);  // the welcome, and a reply
  }
  const Stranger stranger = Come();
  stranger.Send(std::string(kStorePurpose.client_magic) + nonce_);
  EXPECT_EQ(stranger.Read(kHelloBytes + kProofBytes).size(), kHelloBytes + kProofBytes);
  stranger.Send(recorded + kSetKey);
  EXPECT_TRUE(stranger.IsClosed());
  ExpectUntouched();
}

// After half a hello, half a proof, or nothing, a stranger is closed when the time for proofs is over.
TEST_F(Strangers, WhoAreSlowAreClosed) {
  const auto begin = std::chrono::steady_clock::now();
  const Stranger silent = Come(), half = Come(), hello = Come(), drips = Come();
  half.Send(std::string(kStorePurpose.client_magic) + "nonc");
  hello.Send(std::string(kStorePurpose.client_magic) + nonce_);
  hello.Read(kHelloBytes + kProofBytes);
  hello.Send("half a proof");
  // One that always sends a byte before it could seem idle is closed too.
  std::atomic<bool> ends{false};
  std::thread dripping([&] {
    const std::string bytes = std::string(kStorePurpose.client_magic) + nonce_;
    for (size_t i = 0; i + 1 < bytes.size() && !ends; ++i) {
      drips.Send(bytes.substr(i, 1));
      std::this_thread::sleep_for(kProofPatience / 10);
    }
  });
  EXPECT_TRUE(silent.IsClosed());
  EXPECT_TRUE(half.IsClosed());
  EXPECT_TRUE(hello.IsClosed());
  EXPECT_TRUE(drips.IsClosed());
  ends = true;
  dripping.join();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, kProofPatience);  // not before
  EXPECT_EQ(ValueOf(*client_, "key"), "value");                         // who has proved itself may be silent as long
  ExpectUntouched();
}

// A proved client that breaks the protocol is closed, and only that.
TEST_F(Strangers, AProvedClientMayNotSendGarbage) {
  for (const std::string& bytes :
       {std::string("\xff\xff\xff\xff", 4), std::string("\0\0\0\0", 4), std::string("\x0d\0\0\0garbagegarbage", 18),
        // two requests while the first one waits
        *FrameOf({static_cast<uint8_t>(StoreOp::kGet), 0, {"never"}}) + kSetKey}) {
    const Stranger stranger = Come();
    stranger.Send(std::string(kStorePurpose.client_magic) + nonce_);
    const std::string hello = stranger.Read(kHelloBytes + kProofBytes);
    stranger.Send(ClientProof(kStorePurpose, "the secret", nonce_, hello.substr(kMagicBytes, kNonceBytes)) + bytes);
    EXPECT_EQ(stranger.Read(1), std::string(1, kWelcome));
    EXPECT_TRUE(stranger.IsClosed());
  }
  ExpectUntouched();
}

// Thousands who say nothing: the oldest are closed for the sake of those who come.
TEST_F(Strangers, ThousandsOfIdleOnesDoNotKeepARankOut) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);  // both ends of a connection are in this process
  const size_t most = std::min<size_t>(kMostStrangers, limit.rlim_cur / 4);
  const size_t count = std::min<size_t>(6000, limit.rlim_cur - most - 200);
  ASSERT_GT(count, most);
  std::vector<Stranger> strangers;
  for (size_t i = 0; i < count; ++i) strangers.push_back(Come());
  ExpectUntouched();
  size_t open = 0;
  for (const Stranger& stranger : strangers) open += stranger.IsOpen() ? 1 : 0;
  EXPECT_LE(open, most);
  EXPECT_TRUE(strangers.front().IsClosed());
}

// Ranks come in, and work, while strangers come and go as fast as they can, with every kind of bytes.
TEST_F(Strangers, AFloodDoesNotKeepRanksOut) {
  std::atomic<bool> ends{false};
  std::atomic<int> came{0};
  std::vector<std::thread> flood;
  for (unsigned seed = 0; seed < 2; ++seed) {
    flood.emplace_back([&, seed] {
      std::mt19937 random(seed);
      std::vector<Stranger> idle;
      while (!ends) {
        Stranger stranger = Come();
        std::string bytes(random() % 100, '\0');
        for (char& byte : bytes) byte = static_cast<char>(random());
        if (random() % 3 == 0) bytes = std::string(kStorePurpose.client_magic) + bytes;
        stranger.Send(bytes);
        if (random() % 2 == 0) idle.push_back(std::move(stranger));
        if (idle.size() > 500) idle.clear();
        ++came;
      }
    });
  }
  ASSERT_TRUE(Eventually([&] { return came > 2000; }));
  for (int i = 1; i <= 30; ++i) EXPECT_EQ(Ask(*ConnectTo(*server_), StoreOp::kAdd, {"ranks"}, 1)->number, i);
  ends = true;
  for (std::thread& thread : flood) thread.join();
  EXPECT_EQ(Ask(*client_, StoreOp::kDelete, {"ranks"})->number, 1);
  ExpectUntouched();
}

// When the process can open no more files, strangers make room; when there are none, the store tries again later.
TEST_F(Strangers, AProcessWithoutFilesIsNoEnd) {
  std::vector<std::ifstream> files;
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  rlimit few = before;
  few.rlim_cur = 200;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<Stranger> strangers;
  for (int i = 0; i < 20; ++i) strangers.push_back(Come());
  // The store accepts those who came before this question before it hears the next one.
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ValueOf(*client_, "key"), "value");
  while (files.emplace_back("/dev/null").is_open()) {
  }
  files.pop_back();
  files.pop_back();  // one descriptor, for the client's end; the server's end must come from a stranger
  const auto client = ConnectTo(*server_);
  EXPECT_EQ(ValueOf(*client, "key"), "value");
  files.clear();
  setrlimit(RLIMIT_NOFILE, &before);
  ExpectUntouched();
}

}  // namespace
}  // namespace planwright::testing
