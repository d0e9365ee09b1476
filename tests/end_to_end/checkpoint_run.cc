#include "tests/end_to_end/checkpoint_run.h"

#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "tests/support/eventually.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;

std::string PlanProgram() { return InBuild("bin/plan"); }

// Whole lines; the last one may be half-written.
std::vector<std::string> CurveOf(const std::string& run_dir) {
  std::vector<std::string> curve;
  const std::string text = ReadAll(run_dir + "/metrics.jsonl");
  std::stringstream lines(text.substr(0, text.rfind('\n') + 1));
  for (std::string line; std::getline(lines, line);) {
    nlohmann::json step = nlohmann::json::parse(line);
    for (const char* key : {"step_seconds", "pace", "evaluation_seconds", "unheard_seconds", "run_id", "life"})
      step.erase(key);
    curve.push_back(step.dump());
  }
  return curve;
}

}  // namespace

std::string CheckpointRun::Recipe() { return InSource("recipes/nemotron_moe_vlm_tiny.yaml"); }

void CheckpointRun::SetUp() {
  std::string pattern = (fs::temp_directory_path() / "planwright_run_XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  folder_ = pattern;
}

// A test that failed may have left processes, and stopped ones.
void CheckpointRun::TearDown() {
  for (pid_t pid : ProcessesWith(folder_)) kill(pid, SIGKILL);
  Eventually([&] { return ProcessesWith(folder_).empty(); });
  fs::remove_all(folder_);
}

Started CheckpointRun::Launch(const std::string& run_dir, int steps, const std::vector<std::string>& words,
                              const std::vector<std::string>& environment) {
  std::vector<std::string> argv = {PlanProgram(),
                                   "launch",
                                   Recipe(),
                                   "modules.language.placement.first_rank=1",
                                   "batch.micro_samples=2",
                                   "budget.train_samples=320",
                                   "budget.learning_rate.decay_samples=320",
                                   "checkpoint.every_steps=2"};
  argv.insert(argv.end(), words.begin(), words.end());
  argv.insert(argv.end(), {"--local", "--yes", "--run-dir", run_dir, "--steps", std::to_string(steps)});
  return StartProgram(argv, environment, folder_ + "/output" + std::to_string(++programs_));
}

Started CheckpointRun::LaunchWithFault(const std::string& fault, int steps, const KillPoint& at,
                                       std::vector<std::string> words) {
  words.insert(words.end(), {"--executor", InBuild("bin/matrix_executor")});
  return Launch(RunDir(), steps, words,
                {"PLANWRIGHT_FAULT=" + fault, "PLANWRIGHT_FAULT_RANK=" + std::to_string(at.rank),
                 "PLANWRIGHT_FAULT_LIST=" + at.list, "PLANWRIGHT_FAULT_STEP=" + std::to_string(at.step),
                 "PLANWRIGHT_FAULT_NUMBER=" + std::to_string(at.number), "PLANWRIGHT_FAULT_MOMENT=before",
                 "PLANWRIGHT_FAULT_WAITS=" + at.waits, "PLANWRIGHT_FAULT_MARK=" + Folder() + "/mark"});
}

Ended CheckpointRun::RunUntilKilled(int steps, const KillPoint& at, std::vector<std::string> words) {
  return End(LaunchWithFault("SIGKILL", steps, at, std::move(words)));
}

Started CheckpointRun::BeginPaused(int steps, const KillPoint& at, std::vector<std::string> words) {
  fs::remove(Folder() + "/mark");
  return LaunchWithFault("pause", steps, at, std::move(words));
}

void CheckpointRun::KillPaused(const Started& launch) {
  int killed = 0;
  for (pid_t pid : ProcessesWith(RunDir())) {
    const bool stopped = ReadAll("/proc/" + std::to_string(pid) + "/status").find("State:\tT") != std::string::npos;
    if (pid != launch.pid && stopped && kill(pid, SIGKILL) == 0) ++killed;
  }
  EXPECT_GT(killed, 0);
}

// Again and again, as a rank that stops itself may not have come so far.
Ended CheckpointRun::GoOn(const Started& launch) {
  std::optional<int> status;
  EXPECT_TRUE(Eventually([&] {
    for (pid_t pid : ProcessesWith(RunDir())) kill(pid, SIGCONT);
    status = WaitFor(launch.pid, std::chrono::milliseconds(0));
    return status.has_value();
  })) << "the launch has not ended";
  return {status.value_or(-1), ReadAll(launch.output)};
}

Ended CheckpointRun::InterruptAt(int steps, const KillPoint& at, std::vector<std::string> words) {
  const Started launch = BeginPaused(steps, at, std::move(words));
  WaitForPause(at.rank);
  kill(launch.pid, SIGTERM);
  return End(launch);
}

std::string CheckpointRun::FirstManifest(int step) const {
  const std::string number = std::to_string(step);
  return Checkpoints() + "/step-" + std::string(8 - number.size(), '0') + number + ".life-1/manifest.json";
}

Started CheckpointRun::Begin(int steps, const std::vector<std::string>& words) {
  return Launch(RunDir(), steps, words);
}

Ended CheckpointRun::End(const Started& started) {
  const std::optional<int> status = WaitFor(started.pid, kPatience);
  return {status.value_or(-1), ReadAll(started.output)};
}

Ended CheckpointRun::Plan(const std::vector<std::string>& words) {
  std::vector<std::string> argv = {PlanProgram()};
  argv.insert(argv.end(), words.begin(), words.end());
  return End(StartProgram(argv, {}, folder_ + "/output" + std::to_string(++programs_)));
}

void CheckpointRun::WaitForSteps(size_t steps) {
  ASSERT_TRUE(Eventually([&] { return CurveOf(RunDir()).size() >= steps; })) << "no step " << steps;
}

void CheckpointRun::WaitForPause(int rank) {
  const std::string stopped = "rank " + std::to_string(rank) + " is stopped";
  ASSERT_TRUE(Eventually([&] {  // by the log of this life
    return fs::exists(Folder() + "/mark") && ReadAll(RunDir() + "/logs/launch.log").find(stopped) != std::string::npos;
  })) << "no rank has stopped itself";
}

void CheckpointRun::WaitForRanks() {
  ASSERT_TRUE(Eventually([&] { return ProcessesWith("executor --plan " + RunDir() + "/").size() == 2; }));
}

std::string CheckpointRun::WaitForNewCheckpoint(std::vector<std::string>& known) {
  std::string found;
  Eventually([&] {
    for (const std::string& name : CheckpointNames()) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      known.push_back(name);
      found = name;
      return true;
    }
    return false;
  });
  return found;
}

std::vector<std::string> CheckpointRun::Curve() const { return CurveOf(RunDir()); }

nlohmann::json CheckpointRun::Outcome() const {
  return nlohmann::json::parse(ReadAll(RunDir() + "/outcome.json"), nullptr, false);
}

std::vector<std::string> CheckpointRun::CheckpointNames() const {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(Checkpoints(), error), end; !error && it != end; it.increment(error))
    names.push_back(it->path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

// Made once for all tests of the program.
const std::vector<std::string>& CheckpointRun::Whole() {
  static std::vector<std::string> whole;
  if (whole.empty()) {
    const std::string run_dir = folder_ + "/whole";
    const Ended ended = End(Launch(run_dir, kSteps, {}));
    EXPECT_EQ(ended.status, 0) << ended.output;
    whole = CurveOf(run_dir);
  }
  return whole;
}

void CheckpointRun::ExpectCurve(size_t steps) {
  const std::vector<std::string>& whole = Whole();
  const std::vector<std::string> curve = Curve();
  ASSERT_LE(steps, whole.size());
  ASSERT_EQ(curve.size(), steps);
  for (size_t i = 0; i < steps; ++i) EXPECT_EQ(curve[i], whole[i]);
}

void CheckpointRun::ExpectWholeCheckpoints(size_t number) {
  const Ended verify = Plan({"checkpoint", "verify", RunDir(), "--all", "--json"});
  EXPECT_EQ(verify.status, 0) << verify.output;
  const auto json = nlohmann::json::parse(verify.output, nullptr, false);
  ASSERT_TRUE(json.is_object()) << verify.output;
  EXPECT_EQ(json.at("checkpoints").size(), number) << verify.output;
}

}  // namespace planwright::testing
