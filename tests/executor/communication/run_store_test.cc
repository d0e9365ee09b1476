// The store of a run as LibTorch sees it: the same answers as c10d's TCPStore, time-outs, threads, and what a lost
// store looks like.
#include "executor/communication/run_store.h"

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "executor/communication/agreement.h"
#include "executor/communication/failure.h"
#include "executor/communication/resolve.h"
#include "planner/wire/rendezvous/store_server.h"
#include "tests/executor/communication/world.h"
#include "tests/support/eventually.h"

namespace planwright::executor {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using Bytes = std::vector<uint8_t>;
using StorePointer = c10::intrusive_ptr<c10d::Store>;

std::unique_ptr<StoreServer> StartServer() { return *StoreServer::Start("127.0.0.1", 0, "secret"); }

c10::intrusive_ptr<RunStore> ConnectTo(const StoreServer& server, milliseconds timeout = testing::kPatience) {
  auto store = RunStore::Connect({"here", {server.address()}, server.port()}, "secret",
                                 milliseconds(testing::kPatience), timeout);
  EXPECT_TRUE(store.ok()) << store.status();
  return *std::move(store);
}

// What one operation, drawn from `random`, answers.
std::string RandomOperation(c10d::Store& store, std::mt19937& random) {
  const auto draw = [&](int below) { return static_cast<int>(random() % below); };
  const std::string key = "key" + std::to_string(draw(5)), other = "key" + std::to_string(draw(5));
  const std::string value = std::to_string(draw(4)), second = std::to_string(draw(4));
  const auto text = [](const Bytes& bytes) { return std::string(bytes.begin(), bytes.end()); };
  switch (draw(9)) {
    case 0: store.set(key, value); return "";
    case 1: return store.compareSet(key, value, second);
    case 2: return std::to_string(store.add(key, draw(20) - 10));
    case 3: return std::to_string(store.deleteKey(key));
    case 4: return std::to_string(store.check({key, other}));
    case 5: return store.check({key}) ? store.get_to_str(key) : "(none)";
    case 6: store.append(key, Bytes{'1'}); return "";
    case 7: store.multiSet({"a" + key, "a" + other}, {Bytes{'7'}, Bytes{'8'}}); return "";
    default: {
      if (!store.check({key, other})) return "(none)";
      const std::vector<Bytes> values = store.multiGet({key, other});
      return text(values.at(0)) + "," + text(values.at(1));
    }
  }
}

TEST(RunStore, AnswersAsTcpStoreDoes) {
  // In a process of its own, since TCPStore starts threads.
  EXPECT_EQ(RunWorld(1,
                     [](int, int) {
                       c10d::TCPStoreOptions options;
                       options.port = 0;
                       options.isServer = true;
                       options.waitWorkers = false;
                       c10d::TCPStore theirs("127.0.0.1", options);
                       const auto server = StartServer();
                       const auto ours = ConnectTo(*server);
                       std::mt19937 one(5), other(5);
                       for (int i = 0; i < 3000; ++i) {
                         const std::string expected = RandomOperation(theirs, one);
                         EXPECT_EQ(RandomOperation(*ours, other), expected) << "operation " << i;
                         if (::testing::Test::HasFailure()) return 1;
                       }
                       return 0;
                     }),
            std::vector<int>{0});
}

TEST(RunStore, APrefixKeepsUsersApart) {
  const auto server = StartServer();
  const StorePointer store = ConnectTo(*server);
  c10d::PrefixStore one("one", store), other("other", store);
  EXPECT_TRUE(one.hasExtendedApi());
  one.set("id", std::string("1"));
  other.set("id", std::string("2"));
  one.multiSet({"a", "b"}, {Bytes{1}, Bytes{2}});
  EXPECT_EQ(one.get_to_str("id"), "1");
  EXPECT_EQ(other.get_to_str("id"), "2");
  EXPECT_EQ(one.multiGet({"b", "a"}), (std::vector<Bytes>{{2}, {1}}));
  EXPECT_FALSE(other.check({"a"}));
  EXPECT_EQ(store->getNumKeys(), 4);
}

TEST(RunStore, ManyThreadsShareOneConnection) {
  const auto server = StartServer();
  const auto store = ConnectTo(*server);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int n = 0; n < 100; ++n) {
        const std::string key = std::to_string(i) + "/" + std::to_string(n);
        store->set(key, key);
        EXPECT_EQ(store->get_to_str(key), key);
        store->add("sum", 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store->get_to_str("sum"), "800");
}

// A thread that waits holds up its connection, and a clone is another one.
TEST(RunStore, AClonePassesTheKeyThatTheOriginalWaitsFor) {
  const auto server = StartServer();
  const StorePointer store = ConnectTo(*server), clone = store->clone();
  std::thread waits([&] { EXPECT_EQ(store->get_to_str("late"), "came"); });
  std::this_thread::sleep_for(milliseconds(20));
  clone->set("late", std::string("came"));
  waits.join();
}

TEST(RunStore, FilesOfOthersMayTakeLongerThanAnyTimeOut) {
  const auto server = StartServer();
  const auto store = ConnectTo(*server, milliseconds(10)), other = ConnectTo(*server);
  std::thread waits([&] { EXPECT_EQ(AwaitFiles("late", *store), "came"); });
  std::this_thread::sleep_for(milliseconds(100));
  other->set("late", std::string("came"));
  waits.join();
}

std::string ErrorOf(FailureKind kind, const std::function<void()>& operation) {
  try {
    operation();
  } catch (const std::exception& error) {
    EXPECT_EQ(FailureKindOf(error), kind);
    EXPECT_THAT(std::string(error.what()), Not(HasSubstr("\n")));
    return error.what();
  }
  return "(no error)";
}

TEST(RunStore, HonoursTimeOuts) {
  const auto server = StartServer();
  const auto store = ConnectTo(*server, milliseconds(30));
  EXPECT_THAT(ErrorOf(FailureKind::kTimeOut, [&] { store->get("never"); }),
              AllOf(HasSubstr("waited 0.03 s"), HasSubstr("'never'")));
  EXPECT_THAT(ErrorOf(FailureKind::kTimeOut,
                      [&] {
                        store->wait({"a", "b"}, milliseconds(10));
                      }),
              HasSubstr("waited 0.01 s"));
  store->setTimeout(milliseconds(20));
  EXPECT_THAT(ErrorOf(FailureKind::kTimeOut, [&] { store->multiGet({"a"}); }), HasSubstr("waited 0.02 s"));
  {
    const c10d::StoreTimeoutGuard guard(*store, milliseconds(15));
    EXPECT_THAT(ErrorOf(FailureKind::kTimeOut, [&] { store->wait({"a"}); }), HasSubstr("waited 0.015 s"));
  }
  store->setTimeout(c10d::Store::kNoTimeout);  // waits as long as it takes
  std::thread sets([&] {
    std::this_thread::sleep_for(milliseconds(50));
    ConnectTo(*server)->set("a", std::string("1"));
  });
  EXPECT_EQ(store->get_to_str("a"), "1");
  sets.join();
}

TEST(RunStore, ALostStoreIsOneLineWithHostAndPort) {
  auto server = StartServer();
  const auto store = ConnectTo(*server);
  const std::string address = "here:" + std::to_string(server->port());
  std::thread ends([&] {
    std::this_thread::sleep_for(milliseconds(30));
    server.reset();
  });
  EXPECT_THAT(ErrorOf(FailureKind::kStoreLost, [&] { store->get("never"); }),
              HasSubstr("the store at " + address + " is lost"));
  EXPECT_THAT(ErrorOf(FailureKind::kStoreLost, [&] { store->set("a", std::string("b")); }), HasSubstr(address));
  ends.join();
}

TEST(Resolve, NamesAndNumbers) {
  EXPECT_EQ(*Resolve("10.1.2.3", milliseconds(0)), std::vector<std::string>{"10.1.2.3"});
  EXPECT_EQ(*Resolve("::1", milliseconds(0)), std::vector<std::string>{"::1"});
  EXPECT_THAT(*Resolve("localhost", milliseconds(testing::kPatience)), ::testing::Contains("127.0.0.1"));
}

TEST(Resolve, ANameThatIsNotKnownIsOneLine) {
  for (const char* name : {"no-such-host.invalid", "a b", "10.0.0.1:29500"}) {
    const absl::Status status = Resolve(name, milliseconds(200)).status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << name << status;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(std::string("'") + name + "'"), Not(HasSubstr("\n"))));
  }
}

}  // namespace
}  // namespace planwright::executor
