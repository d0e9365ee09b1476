// The watchdog ends a rank that makes no progress. The device is a fake that is as far as the test says.
#include "executor/rank/watchdog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <future>

#include "executor/log/log.h"
#include "tests/support/eventually.h"

namespace planwright::executor {
namespace {

using namespace std::chrono_literals;

class ToyDevice : public Completion {
 public:
  std::chrono::nanoseconds Mark(uint64_t) override { return {}; }
  uint64_t Finished() override { return finished; }
  std::atomic<uint64_t> finished{0};
};

struct End {
  FailureKind kind;
  std::string instruction, what;
};

class WatchdogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = ::testing::TempDir() + "watchdogXXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    auto recorder = Recorder::Open(folder, 0, "here");
    ASSERT_TRUE(recorder.ok());
    recorder_ = *std::move(recorder);
  }
  void OnADevice() {
    auto device = std::make_unique<ToyDevice>();
    device_ = device.get();
    recorder_->Follow(std::move(device));
  }
  void Begin(const std::string& instruction, RecorderState state = RecorderState::kRunning) {
    recorder_->Begin(state, step_, -1, -1, "step 1", 0, instruction, deadline_);
  }
  Watchdog::Duties Duties(std::chrono::milliseconds deadline) {
    deadline_ = deadline;
    return {.bytes_moved = [this]() -> std::optional<int64_t> {
              ++asked_;
              if (moves_) bytes_ += 10'000'000;
              return bytes_;
            },
            .find_failure = [this] { return failure_; },
            .end =
                [this](FailureKind kind, const std::optional<RecordedInstruction>& at, const std::string& what) {
                  end_.set_value({kind, at ? at->text : "", what});
                }};
  }
  // Waits for the watchdog to end the rank; the test fails if it does not.
  End Wait() {
    std::future<End> end = end_.get_future();
    if (end.wait_for(testing::kPatience) == std::future_status::ready) return end.get();
    ADD_FAILURE() << "the watchdog sleeps";
    return {};
  }

  std::string folder_;
  std::unique_ptr<Recorder> recorder_;
  ToyDevice* device_ = nullptr;
  std::chrono::milliseconds deadline_{};  // of the instructions that begin from now on
  int64_t bytes_ = 0;                     // that files have moved when the watchdog asks
  std::atomic<bool> moves_{false};        // more with each question
  std::atomic<int> asked_{0};             // how often the watchdog asked for them
  int64_t step_ = 1;
  std::optional<CommunicationError> failure_;
  std::promise<End> end_;
};

TEST_F(WatchdogTest, EndsACommunicationThatDoesNot) {
  const Watchdog watchdog(*recorder_, Duties(100ms));
  Begin("linear");
  Begin("all_reduce over world", RecorderState::kWaiting);
  const End end = Wait();
  EXPECT_EQ(end.kind, FailureKind::kTimeOut);
  EXPECT_EQ(end.instruction, "all_reduce over world");
  EXPECT_EQ(end.what, "no progress for 0.1 seconds, its deadline");
}

TEST_F(WatchdogTest, LogsAWarningAtHalfOfTheDeadline) {
  ASSERT_TRUE(OpenLog(folder_, 0, [] { return absl::OkStatus(); }).ok());
  std::future<End> end = end_.get_future();
  const Watchdog watchdog(*recorder_, Duties(100ms));
  Begin("all_reduce over world", RecorderState::kWaiting);
  std::string log;
  EXPECT_TRUE(testing::Eventually([&] {
    std::ifstream file(folder_ + "/logs/rank0000.log");
    log.assign(std::istreambuf_iterator<char>(file), {});
    return log.ends_with("\n");
  }));
  EXPECT_THAT(
      log, ::testing::MatchesRegex(
               "W[^\n]* waiting for 0.05 seconds in step 1 0: all_reduce over world; its deadline is 0.1 seconds\n"));
  EXPECT_EQ(end.wait_for(testing::kPatience), std::future_status::ready);
}

TEST_F(WatchdogTest, NamesWhatTheDeviceIsAtAndNotWhatWasLaunchedLast) {
  OnADevice();
  device_->finished = 1;
  const Watchdog watchdog(*recorder_, Duties(100ms));
  for (const char* instruction : {"rms_norm", "linear", "add"}) Begin(instruction);
  Begin("all_reduce over world", RecorderState::kWaiting);
  EXPECT_EQ(Wait().instruction, "linear");
}

// Drawing weights may take long. Peers that wait for this rank have limits of their own.
TEST_F(WatchdogTest, WorkOfTheHostHasNoLimit) {
  std::future<End> end = end_.get_future();
  const Watchdog watchdog(*recorder_, Duties(10ms));
  Begin("initialize_parameters");
  EXPECT_EQ(end.wait_for(500ms), std::future_status::timeout);
}

TEST_F(WatchdogTest, WorkThatIsStillBeingLaunchedHasNoLimit) {
  OnADevice();
  std::future<End> end = end_.get_future();
  const Watchdog watchdog(*recorder_, Duties(10ms));
  Begin("load_parameters");
  EXPECT_EQ(end.wait_for(500ms), std::future_status::timeout);
}

// What another rank still writes is limited by that rank's own watchdog.
TEST_F(WatchdogTest, SavingThatWaitsForOthersHasNoLimit) {
  std::future<End> end = end_.get_future();
  Watchdog watchdog(*recorder_, Duties(10ms));
  watchdog.WaitForOthers(true);
  Begin("save_counters", RecorderState::kStoring);
  EXPECT_EQ(end.wait_for(500ms), std::future_status::timeout);
  Begin("read_tokens", RecorderState::kReading);  // reading waits for nobody
  EXPECT_EQ(end.wait_for(testing::kPatience), std::future_status::ready);
}

TEST_F(WatchdogTest, SavingHasItsLimitAgainWhenOthersAreDone) {
  Watchdog watchdog(*recorder_, Duties(10ms));
  watchdog.WaitForOthers(true);
  Begin("save_counters", RecorderState::kStoring);
  watchdog.WaitForOthers(false);
  EXPECT_EQ(Wait().instruction, "save_counters");
}

TEST_F(WatchdogTest, EachInstructionHasItsOwnDeadline) {
  const Watchdog watchdog(*recorder_, Duties(10ms));
  deadline_ = 1h;
  Begin("all_reduce over world", RecorderState::kWaiting);
  std::future<End> end = end_.get_future();
  EXPECT_EQ(end.wait_for(500ms), std::future_status::timeout);
  deadline_ = 10ms;
  Begin("all_gather over world", RecorderState::kWaiting);
  ASSERT_EQ(end.wait_for(testing::kPatience), std::future_status::ready);
  EXPECT_EQ(end.get().instruction, "all_gather over world");
}

TEST_F(WatchdogTest, StorageHangsWhenNoByteMoves) {
  moves_ = true;
  const Watchdog watchdog(*recorder_, Duties(2s));
  Begin("save_state", RecorderState::kStoring);
  std::future<End> end = end_.get_future();
  // For much longer than the deadline: the watchdog asks once a second.
  ASSERT_TRUE(testing::Eventually([&] { return asked_ >= 6; }));
  ASSERT_EQ(end.wait_for(0ms), std::future_status::timeout);
  moves_ = false;
  ASSERT_EQ(end.wait_for(testing::kPatience), std::future_status::ready);
  const End ended = end.get();
  EXPECT_EQ(ended.kind, FailureKind::kTimeOut);
  EXPECT_EQ(ended.what, "no byte moved for 2 seconds, its deadline");
}

// As storage: a rank alone, or all ranks that read from one disk, have no peer that would end the run.
TEST_F(WatchdogTest, ReadingSamplesHangsWhenNoByteMoves) {
  const Watchdog watchdog(*recorder_, Duties(100ms));
  Begin("read_tokens", RecorderState::kReading);
  const End end = Wait();
  EXPECT_EQ(end.kind, FailureKind::kTimeOut);
  EXPECT_EQ(end.instruction, "read_tokens");
  EXPECT_EQ(end.what, "no byte moved for 0.1 seconds, its deadline");
}

// A step after the first one that the watchdog saw, and before the last.
TEST_F(WatchdogTest, RecordsHowLongTheRankComputesInAStep) {
  std::chrono::milliseconds computing = 100ms;  // five periods of the watchdog, in which it may get no core
  EXPECT_TRUE(testing::Eventually([&] {
    recorder_ = *Recorder::Open(folder_, 0, "here");
    const Watchdog watchdog(*recorder_, Duties(1h));
    for (step_ = 4; step_ < 7; ++step_) {
      Begin("linear");
      std::this_thread::sleep_for(computing);
      Begin("save_state", RecorderState::kStoring);
      const int asked = asked_;  // the watchdog has seen this step when it asks again
      EXPECT_TRUE(testing::Eventually([&] { return asked_ > asked; }));
    }
    computing *= 2;
    const std::vector<RecordedPace> paces = ReadPaces(recorder_->page());
    EXPECT_EQ(paces.size(), 1u);
    if (paces.size() != 1) return true;
    EXPECT_EQ(paces[0].step, 5);
    return paces[0].busy > 0;
  }));
}

TEST_F(WatchdogTest, ARankThatIsDoneIsLeftAlone) {
  Begin("all_reduce over world", RecorderState::kWaiting);
  recorder_->Done();
  std::future<End> end = end_.get_future();
  const Watchdog watchdog(*recorder_, Duties(10ms));
  EXPECT_EQ(end.wait_for(500ms), std::future_status::timeout);
}

TEST_F(WatchdogTest, PassesOnWhatABackendFoundOut) {
  failure_ = CommunicationError(FailureKind::kPeerLost, "connection closed");
  const Watchdog watchdog(*recorder_, Duties(1h));
  const End end = Wait();
  EXPECT_EQ(end.kind, FailureKind::kPeerLost);
  EXPECT_EQ(end.what, "connection closed");
}

}  // namespace
}  // namespace planwright::executor
