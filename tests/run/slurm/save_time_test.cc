// How long before the end of a job its ranks are asked to save.
#include "planner/run/slurm/save_time.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "planner/run/launch/held_signals.h"
#include "planner/run/launch/until_saved.h"
#include "planner/run/slurm/job_clock.h"
#include "planner/state/checkpoint/checkpoint_log.h"
#include "planner/state/checkpoint/life_start.h"
#include "planner/wire/records/evaluation_record.h"
#include "planner/wire/records/step_record.h"
#include "tests/support/eventually.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class SaveTime : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "save_timeXXXXXX";
    run_ = mkdtemp(pattern.data());
    plan_.world_size = 2;
    plan_.cluster = {.nodes = 1, .gpus_per_node = 2, .gpu = "none"};
  }
  void TearDown() override { fs::remove_all(run_); }

  RunOptions Options() const {
    RunOptions options;
    options.run_dir = run_;
    return options;
  }
  void Append(const std::string& line) { std::ofstream(run_ + "/metrics.jsonl", std::ios::app) << line << "\n"; }
  void Step(int64_t step, double seconds) {
    StepRecord record;
    record.step = step, record.consumed_samples = 8 * step, record.step_seconds = seconds;
    Append(StepJson(record));
  }

  std::string run_;
  Plan plan_;
};

// A request that comes as a step begins is heard by the next one.
TEST_F(SaveTime, CoversTwoStepsAsPredictedAndThenAsMeasured) {
  EXPECT_EQ(SecondsUntilStop(plan_, Options()), 0) << "nobody knows";
  const int least = SecondsToSave(plan_, Options());
  EXPECT_GE(least, 60);
  plan_.launch.predicted_step = 100;
  EXPECT_EQ(SecondsUntilStop(plan_, Options()), 200);
  EXPECT_GE(SecondsToSave(plan_, Options()), 60 + 200);
  Step(1, 45);
  Step(2, 30);
  EXPECT_EQ(SecondsUntilStop(plan_, Options()), 90) << "the longest, also if it was predicted otherwise";
  plan_.cluster.gpu = "h100_sxm";
  EXPECT_EQ(SecondsUntilStop(plan_, Options()), 45 * 10) << "the host of a GPU is steps ahead";
  RunOptions on_cpu = Options();
  on_cpu.device = "cpu";
  EXPECT_EQ(SecondsUntilStop(plan_, on_cpu), 90);
}

TEST_F(SaveTime, CoversAnEvaluationBetweenTwoLooks) {
  Step(1, 2);
  Append(EvaluationJson({.step = 1, .consumed_samples = 8, .seconds = 900, .unheard = 70}));
  EXPECT_EQ(SecondsUntilStop(plan_, Options()), 70);
  // Of a release that did not look: it says nothing of it.
  fs::remove(run_ + "/metrics.jsonl");
  Append(EvaluationJson({.step = 1, .consumed_samples = 8, .seconds = 900}));
  EXPECT_EQ(SecondsUntilStop(plan_, Options()), 0);
}

TEST_F(SaveTime, CoversTheCheckpointThatIsJustWritten) {
  Step(1, 2);
  fs::create_directories(LifeFolder(run_, 1));
  fs::create_directories(LifeFolder(run_, 2));
  for (const double written : {10.0, 40.0, 20.0}) {
    ASSERT_TRUE(LogCheckpoint(run_, 1, {.step = 1, .bytes = 1, .written = written}).ok());
  }
  EXPECT_EQ(SecondsToSave(plan_, Options()), 60 + 41 + 41) << "one that was begun before the request, and the last one";
}

// Where it ends is not read: a file may be of any size.
TEST_F(SaveTime, ReadsTheEndAlone) {
  Step(1, 500);
  fs::resize_file(run_ + "/metrics.jsonl", int64_t{1} << 36);  // takes no room
  Append("");
  Step(2, 3);
  EXPECT_EQ(ReadStretches(run_).step, 3);
}

TEST(JobClock, RingsByWhatWasMeasuredMeanwhile) {
  HeldSignals held;
  const auto in = [](int seconds) { return std::to_string(std::time(nullptr) + seconds); };
  std::atomic<double> margin = 0;
  {
    const JobClock clock(
        in(3600), [&] { return margin.load(); }, 1ms);
    EXPECT_EQ(held.WaitFor(20ms), 0);
    margin = 1e9;
    EXPECT_EQ(held.WaitFor(20ms), 0) << "half of the job's time is for steps";
  }
  {
    const JobClock clock(
        in(0), [&] { return margin.load(); }, 1ms);
    EXPECT_EQ(held.WaitFor(testing::kPatience), SIGUSR1);
    EXPECT_EQ(held.WaitFor(20ms), 0) << "once";
  }
  for (const char* end : {"", "soon", "-5", "0"}) {
    const JobClock clock(
        end, [&] { return margin.load(); }, 1ms);
    EXPECT_EQ(held.WaitFor(5ms), 0) << end;
  }
}

}  // namespace
}  // namespace planwright
