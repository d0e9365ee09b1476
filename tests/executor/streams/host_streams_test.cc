// Streams as threads: an instruction starts after those that it waits for, communications start in program order, and
// nothing else is promised.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "executor/streams/streams.h"
#include "tests/support/eventually.h"

namespace planwright::executor {
namespace {

struct Toy {
  explicit Toy(int streams, BeforeInstruction before_instruction = {}) {
    std::string folder = ::testing::TempDir() + "streamsXXXXXX";
    recorder = *Recorder::Open(mkdtemp(folder.data()), 0, "here");
    made = MakeHostStreams(
        streams, *recorder,
        [this](const std::exception& error) {
          failure = error.what();
          failed = true;
        },
        std::move(before_instruction));
  }

  void Give(int stream, const std::vector<int64_t>& waits, const std::function<void()>& work,
            bool communicates = false) {
    recorder->Begin(RecorderState::kRunning, 1, -1, -1, "step 1", 0, "work");
    made->Run({stream, waits, communicates}, work);
  }

  std::unique_ptr<Recorder> recorder;
  std::unique_ptr<Streams> made;
  std::string failure;
  std::atomic<bool> failed{false};
};

// Threads wait at the door until the test opens it.
class Door {
 public:
  void Open() { open_ = true, open_.notify_all(); }
  void Pass() { open_.wait(false); }

 private:
  std::atomic<bool> open_{false};
};

TEST(HostStreams, AnInstructionWaitsForWhatItNamesAndForNothingElse) {
  Toy run(3);
  Door door;
  std::atomic<bool> waited{false}, done_first{false};
  run.Give(1, {-1, -1, -1}, [&] {
    door.Pass();
    done_first = true;
  });
  run.Give(2, {-1, 0, -1}, [&] { waited = done_first.load(); });
  bool ran = false;
  run.Give(0, {-1, -1, -1}, [&] { ran = true; });  // returns while the others wait at the door
  EXPECT_TRUE(ran);
  EXPECT_FALSE(done_first);
  door.Open();
  run.made->Join();
  EXPECT_TRUE(waited);
}

TEST(HostStreams, TheWalkersOwnStreamWaitsToo) {
  Toy run(2);
  std::atomic<int> value{0};
  for (int i = 0; i < 200; ++i) {
    run.Give(1, {2 * i - 1, -1}, [&] { ++value; });
    run.Give(0, {-1, 2 * i}, [&, i] { EXPECT_EQ(value, i + 1); });
  }
}

// A communication whose stream is delayed delays later communications on other streams, but no other instruction.
TEST(HostStreams, CommunicationsStartInProgramOrder) {
  Toy run(4);
  Door door;
  std::atomic<bool> passed{false}, later{false}, other{false};
  run.Give(1, {-1, -1, -1, -1}, [&] {
    door.Pass();
    passed = true;
  });
  run.Give(
      2, {-1, 0, -1, -1}, [] {}, /*communicates=*/true);
  run.Give(3, {-1, -1, -1, -1}, [&] { other = true; });
  run.Give(
      3, {-1, -1, -1, -1},
      [&] {
        EXPECT_TRUE(passed);
        later = true;
      },
      /*communicates=*/true);
  EXPECT_TRUE(planwright::testing::Eventually([&] { return other.load(); }));
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  EXPECT_FALSE(later);
  door.Open();
  run.made->Join();
  EXPECT_TRUE(later);
}

// A communication that has started does not keep later ones from starting, however long it runs.
TEST(HostStreams, CommunicationsOverlap) {
  Toy run(3);
  Door door;
  run.Give(
      1, {-1, -1, -1}, [&] { door.Pass(); }, /*communicates=*/true);
  run.Give(
      2, {-1, -1, -1}, [&] { door.Open(); }, /*communicates=*/true);
  run.made->Join();
}

TEST(HostStreams, WhatIsDoneIsCountedWithoutAGap) {
  Toy run(3);
  Door first, second;
  run.Give(1, {-1, -1, -1}, [&] { first.Pass(); });
  run.Give(2, {-1, -1, -1}, [&] { second.Pass(); });
  run.Give(0, {-1, -1, -1}, [] {});
  run.recorder->Refresh();
  EXPECT_EQ(run.recorder->done(), 0u);
  second.Open();
  EXPECT_EQ(run.recorder->done(), 0u);
  first.Open();
  run.made->Join();
  run.recorder->Refresh();
  EXPECT_EQ(run.recorder->done(), 3u);
}

TEST(HostStreams, WhoFailsSaysSoAtOnce) {
  Toy run(2);
  run.Give(1, {-1, -1}, [] { throw std::runtime_error("a peer is gone"); });
  run.made->Join();
  EXPECT_TRUE(run.failed);
  EXPECT_EQ(run.failure, "a peer is gone");
}

TEST(HostStreams, WhatWorkHoldsIsLetGoBeforeItCountsAsDone) {
  Toy run(2);
  const auto held = std::make_shared<int>(1);
  run.Give(1, {-1, -1}, [held] {});
  run.made->Join();
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace planwright::executor
