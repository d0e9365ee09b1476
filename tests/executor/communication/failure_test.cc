// A communication whose peer is gone, does not come, or does something else fails with a kind, which gives the exit
// status.
#include "executor/communication/failure.h"

#include <ATen/ops/full.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "executor/communication/backends.h"
#include "executor/communication/communicator.h"
#include "executor/communication/rendezvous.h"
#include "planner/base/files/exit_status.h"
#include "tests/executor/communication/world.h"
#include "tests/support/eventually.h"

namespace planwright::executor {
namespace {

using namespace std::chrono_literals;

// Rank 0 runs an all-reduce with rank 1, which does `peer` instead and ends, perhaps before rank 0 has fully joined.
// Returns the exit status of the kind with which rank 0 fails; 1: another error, or none.
int StatusOfRank0(std::chrono::milliseconds timeout, const std::function<void(c10d::Store& store)>& peer) {
  return RunWorld(2, [&](int rank, int port) {
    std::signal(SIGPIPE, SIG_IGN);  // as the executor does
    Environment environment{.rank = rank,
                            .world_size = 2,
                            .address = "127.0.0.1",
                            .port = port,
                            .nonce = "n",
                            .host = "here",
                            .timeout = testing::kPatience};
    auto store = OpenStore(environment);
    if (!store.ok()) return 1;
    int status = 1;
    try {
      auto group = MakeGlooCommunicator(*store, "group", {0, 1}, rank, "127.0.0.1", timeout);
      if (rank == 1) {
        peer(**store);
        _exit(0);
      }
      AllReduce(*group, at::full({2}, 1.0), Reduce::kSum);
    } catch (const CommunicationError& error) {
      status = ExitStatusOf(error.kind());
    }
    (*store)->set("over", std::string("yes"));
    return status;
  })[0];
}

TEST(Failure, APeerThatIsGoneIsLost) {
  EXPECT_EQ(StatusOfRank0(testing::kPatience, [](c10d::Store&) {}), kExitPeerLost);
}

// The time-out is meant for a peer that never comes, but must be long enough for one that joins: many times what
// joining takes here.
TEST(Failure, APeerThatDoesNotComeIsATimeOut) {
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(StatusOfRank0(testing::kPatience, [](c10d::Store&) {}), kExitPeerLost);
  const auto joining = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
  EXPECT_EQ(StatusOfRank0(1s + 20 * joining, [](c10d::Store& store) { store.wait({"over"}, testing::kPatience); }),
            kExitHang);
}

TEST(Failure, TypesOfOthersHaveAKind) {
  EXPECT_EQ(FailureKindOf(CommunicationError(FailureKind::kTimeOut, "")), FailureKind::kTimeOut);
  EXPECT_EQ(FailureKindOf(c10::AcceleratorError({}, 700, "")), FailureKind::kDevice);
  EXPECT_EQ(FailureKindOf(c10::AcceleratorError({}, 2, "")), FailureKind::kDeviceMemory);
  EXPECT_EQ(FailureKindOf(c10::OutOfMemoryError(c10::SourceLocation{}, "")), FailureKind::kDeviceMemory);
  EXPECT_EQ(FailureKindOf(std::bad_alloc()), FailureKind::kHostMemory);
  EXPECT_EQ(MessageOf(std::bad_alloc()), "out of host memory: std::bad_alloc");
  EXPECT_EQ(FailureKindOf(c10::DistStoreError(c10::SourceLocation{}, "")), FailureKind::kStoreLost);
  EXPECT_EQ(FailureKindOf(c10::DistNetworkError(c10::SourceLocation{}, "")), FailureKind::kStoreLost);
  EXPECT_EQ(FailureKindOf(c10::DistBackendError(c10::SourceLocation{}, "")), FailureKind::kPeerLost);
  // The text of an error decides nothing.
  EXPECT_EQ(FailureKindOf(std::runtime_error("gloo: NCCL timed out, connection closed by peer")), FailureKind::kOurs);
  EXPECT_EQ(ExitStatusOf(FailureKind::kDevice), kExitDevice);
  EXPECT_EQ(ExitStatusOf(FailureKind::kDeviceMemory), kExitDeviceMemory);
  EXPECT_EQ(ExitStatusOf(FailureKind::kHostMemory), kExitHostMemory);
  EXPECT_EQ(ExitStatusOf(FailureKind::kNetwork), kExitNetwork);
  EXPECT_EQ(ExitStatusOf(FailureKind::kStoreLost), kExitStoreLost);
  EXPECT_EQ(ExitStatusOf(FailureKind::kOurs), kExitInternal);
}

}  // namespace
}  // namespace planwright::executor
