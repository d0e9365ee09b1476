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
  void Mark(uint64_t) override {}
  uint64_t Finished() override { return finished; }
  std::atomic<uint64_t> finished{0};
};

struct End {
  FailureKind kind;
  std::string place, what;
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
    recorder_->Begin(state, 1, -1, -1, "step 1", 0, instruction);
  }
  Watchdog::Duties Duties(std::chrono::milliseconds limit) {
    return {.limit = limit,
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
  std::optional<CommunicationError> failure_;
  std::promise<End> end_;
};

TEST_F(WatchdogTest, EndsACommunicationThatDoesNot) {
  const Watchdog watchdog(*recorder_, Duties(100ms));
  Begin("linear");
  Begin("all_reduce over world", RecorderState::kWaiting);
  const End end = Wait();
  EXPECT_EQ(end.kind, FailureKind::kTimeOut);
  EXPECT_EQ(end.place, "all_reduce over world");
  EXPECT_EQ(end.what, "no progress for 0.1 seconds");
}

TEST_F(WatchdogTest, LogsAWarningAtHalfOfTheLimit) {
  ASSERT_TRUE(OpenLog(folder_, 0, [] { return absl::OkStatus(); }).ok());
  std::future<End> end = end_.get_future();
  Begin("all_reduce over world", RecorderState::kWaiting);
  const Watchdog watchdog(*recorder_, Duties(100ms));
  std::string log;
  EXPECT_TRUE(testing::Eventually([&] {
    std::ifstream file(folder_ + "/logs/rank0000.log");
    log.assign(std::istreambuf_iterator<char>(file), {});
    return log.ends_with("\n");
  }));
  EXPECT_THAT(log,
              ::testing::MatchesRegex(
                  "W[^\n]* waiting for 0.05 seconds in step 1 0: all_reduce over world; the limit is 0.1 seconds\n"));
  EXPECT_EQ(end.wait_for(testing::kPatience), std::future_status::ready);
}

TEST_F(WatchdogTest, NamesWhatTheDeviceIsAtAndNotWhatWasLaunchedLast) {
  OnADevice();
  device_->finished = 1;
  const Watchdog watchdog(*recorder_, Duties(100ms));
  for (const char* instruction : {"rms_norm", "linear", "add"}) Begin(instruction);
  Begin("all_reduce over world", RecorderState::kWaiting);
  EXPECT_EQ(Wait().place, "linear");
}

// Reading weights or samples may take long. Peers that wait for this rank have limits of their own.
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
