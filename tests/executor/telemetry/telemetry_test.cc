#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <thread>

#include "executor/telemetry/recorder.h"
#include "executor/telemetry/start_up.h"
#include "executor/telemetry/step_log.h"
#include "executor/telemetry/step_pace.h"

namespace planwright::executor {
namespace {

using ::testing::HasSubstr;

std::string FreshFolder() {
  std::string folder = ::testing::TempDir() + "telemetryXXXXXX";
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  return folder;
}

TEST(Recorder, OutlivesAKilledRank) {
  const std::string run = FreshFolder();
  const pid_t child = fork();
  if (child == 0) {
    auto recorder = Recorder::Open(run, 3, "node7");
    (*recorder)->Begin(RecorderState::kRunning, 12, -1, 4, "step 12", 3, "linear x -> n");
    (*recorder)->Begin(RecorderState::kWaiting, 12, 1, 5, "step 12 > language.layers.3 language.moe.forward", 4,
                       "all_gather n -> n_full over language.tp");
    raise(SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));

  std::ifstream file(RecorderPath(run, 3), std::ios::binary);
  std::vector<char> bytes(sizeof(RecorderPage));
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  ASSERT_EQ(file.gcount(), static_cast<std::streamsize>(bytes.size()));
  const auto* page = reinterpret_cast<const RecorderPage*>(bytes.data());
  EXPECT_EQ(std::memcmp(page->magic, kRecorderMagic, sizeof kRecorderMagic), 0);
  EXPECT_EQ(page->state, static_cast<int32_t>(RecorderState::kWaiting));
  EXPECT_EQ(page->pid, child);
  EXPECT_STREQ(page->host, "node7");
  EXPECT_EQ(page->begun, 2u);
  EXPECT_EQ(page->done, 1u);
  const auto last = ReadEntry(*page, 2);
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->state, RecorderState::kWaiting);
  EXPECT_EQ(last->step, 12);
  EXPECT_EQ(last->microbatch, 1);
  EXPECT_EQ(last->origin, 5);
  EXPECT_EQ(last->path, "step 12 > language.layers.3 language.moe.forward 4");
  EXPECT_EQ(last->text, "all_gather n -> n_full over language.tp");
  EXPECT_EQ(ReadEntry(*page, 1)->text, "linear x -> n");
  EXPECT_FALSE(ReadEntry(*page, 3).has_value());
}

TEST(Recorder, CutsLongTextAndSaysWhenItCannotWrite) {
  const std::string run = FreshFolder();
  auto recorder = Recorder::Open(run, 0, std::string(1000, 'h'));
  ASSERT_TRUE(recorder.ok());
  (*recorder)->Begin(RecorderState::kRunning, 1, -1, -1, std::string(5000, 'p'), 1, std::string(5000, 'i'));
  (*recorder)->Fail(12, std::string(9000, 'm').c_str());
  EXPECT_EQ(std::strlen((*recorder)->page().host), 63u);
  EXPECT_EQ(ReadEntry((*recorder)->page(), 1)->path.size(), 255u);
  EXPECT_EQ(ReadEntry((*recorder)->page(), 1)->text.size(), 255u);
  EXPECT_EQ(std::strlen((*recorder)->page().message), 2047u);
  EXPECT_EQ((*recorder)->page().exit_code, 12);
  EXPECT_EQ(Recorder::Open("/proc/nowhere", 0, "h").status().code(), absl::StatusCode::kResourceExhausted);
}

// A rank of a life that was cut off opens the pages which the rank of a newer life uses.
TEST(Recorder, AnotherRecorderTakesNoPagesAway) {
  const std::string run = FreshFolder();
  auto first = Recorder::Open(run, 0, "node1");
  ASSERT_TRUE(first.ok());
  auto second = Recorder::Open(run, 0, "node2");
  ASSERT_TRUE(second.ok());
  (*first)->Begin(RecorderState::kRunning, 1, -1, -1, "step 1", 0, "linear");
  EXPECT_EQ((*first)->begun(), 1u);
  EXPECT_EQ((*second)->begun(), 0u);
  EXPECT_STREQ((*first)->page().host, "node1");
}

// A device that is as far as the test says.
class ToyDevice : public Completion {
 public:
  std::chrono::nanoseconds Mark(uint64_t number) override {
    marked = number;
    return std::chrono::nanoseconds(number % 2 == 0 ? 500 : 0);  // it is far behind at every second one
  }
  uint64_t Finished() override { return finished; }
  std::atomic<uint64_t> marked{0}, finished{0};
};

TEST(Recorder, WhatIsDoneIsTheDevicesWord) {
  auto recorder = Recorder::Open(FreshFolder(), 0, "here");
  ASSERT_TRUE(recorder.ok());
  auto owned = std::make_unique<ToyDevice>();
  ToyDevice& device = *owned;
  (*recorder)->Follow(std::move(owned));
  for (int i = 0; i < 5; ++i) (*recorder)->Begin(RecorderState::kRunning, 1, -1, -1, "step 1", i, "linear");
  EXPECT_EQ(device.marked, 4u);  // the fifth is still being launched
  EXPECT_EQ((*recorder)->launched(), 4u);
  EXPECT_EQ((*recorder)->waited(), std::chrono::nanoseconds(1000));
  EXPECT_EQ((*recorder)->done(), 0u);
  device.finished = 3;
  (*recorder)->Refresh();
  EXPECT_EQ((*recorder)->begun(), 5u);
  EXPECT_EQ((*recorder)->done(), 3u);
  // After the rank has failed its device is released. What it finishes then is not progress.
  (*recorder)->Fail(11, "no progress");
  device.finished = 4;
  (*recorder)->Refresh();
  EXPECT_EQ((*recorder)->done(), 3u);
}

TEST(Recorder, TheEndOfTheProgramWaitsForTheDevice) {
  auto recorder = Recorder::Open(FreshFolder(), 0, "here");
  ASSERT_TRUE(recorder.ok());
  auto owned = std::make_unique<ToyDevice>();
  ToyDevice& device = *owned;
  (*recorder)->Follow(std::move(owned));
  (*recorder)->Begin(RecorderState::kRunning, 1, -1, -1, "step 1", 0, "adamw");
  std::thread worker([&] {
    while (device.marked != 1) std::this_thread::yield();
    EXPECT_NE((*recorder)->page().state, static_cast<int32_t>(RecorderState::kDone));
    device.finished = 1;
  });
  (*recorder)->Done();
  worker.join();
  EXPECT_EQ((*recorder)->done(), 1u);
  EXPECT_EQ((*recorder)->page().state, static_cast<int32_t>(RecorderState::kDone));
}

// A reader gets an instruction as it was written, or nothing; never a mixture of two.
TEST(Recorder, ReadersNeverSeeHalfAnInstruction) {
  auto recorder = Recorder::Open(FreshFolder(), 0, "here");
  ASSERT_TRUE(recorder.ok());
  std::atomic<bool> over{false};
  std::thread writer([&] {
    for (uint64_t number = 1; number <= 50 * kRecorderEntries; ++number) {
      (*recorder)->Begin(RecorderState::kRunning, static_cast<int64_t>(number), -1, -1, "step", 0,
                         std::to_string(number));
    }
    over = true;
  });
  while (!over) {
    const uint64_t begun = (*recorder)->begun();
    for (const uint64_t number : {begun, begun - std::min(begun, kRecorderEntries - 1)}) {
      const auto read = ReadEntry((*recorder)->page(), number);
      if (!read) continue;
      ASSERT_EQ(read->step, static_cast<int64_t>(number));
      ASSERT_EQ(read->text, std::to_string(number));
    }
  }
  writer.join();
  EXPECT_EQ(ReadEntry((*recorder)->page(), 50 * kRecorderEntries)->text, std::to_string(50 * kRecorderEntries));
  EXPECT_FALSE(ReadEntry((*recorder)->page(), 49 * kRecorderEntries).has_value());
}

TEST(StepLog, WritesAllDigits) {
  StepRecord record{.step = 3,
                    .consumed_samples = 24,
                    .loss = 0.1 + 0.2,
                    .grad_norm = 1.0 / 3,
                    .module_grad_norms = {{"language", std::nan("")}, {"radio \"x\"", 2.5}},
                    .learning_rate = 1e-3,
                    .step_seconds = 0.25,
                    .speed = {.tokens = 49.25, .teraflops = 0.125, .seconds_left = 4.25},
                    .skipped = true,
                    .routing = 0xdeadbeefULL,
                    .bridge_mean_squares = {{"radio->language", 1.0 / 7}, {"other->language", std::nullopt}}};
  const auto json = nlohmann::json::parse(StepJson(record));
  EXPECT_EQ(json["loss"].get<double>(), 0.1 + 0.2);
  EXPECT_EQ(json["grad_norm"].get<double>(), 1.0 / 3);
  EXPECT_TRUE(json["module_grad_norms"]["language"].is_null());
  EXPECT_EQ(json["module_grad_norms"]["radio \"x\""].get<double>(), 2.5);
  EXPECT_EQ(json["routing"], "00000000deadbeef");
  EXPECT_TRUE(json["aux_loss"].is_null());
  EXPECT_EQ(json["skipped"], true);
  EXPECT_EQ(json["bridge_mean_square"]["radio->language"].get<double>(), 1.0 / 7);
  EXPECT_TRUE(json["bridge_mean_square"]["other->language"].is_null());
  EXPECT_FALSE(json.contains("device_memory"));
  EXPECT_EQ(
      StepLine(record, 20),
      "step 3/20  samples 24  loss 0.300000  grad norm 0.3333  rows 0.1429 -  lr 1.000e-03  0.250 s  49.2 tok/s/rank  "
      "left 4.25 s  SKIPPED, not finite: language");
  EXPECT_EQ(json["pace"].dump(),
            R"({"data_wait_seconds":null,"mfu":null,"seconds_left":4.25,"teraflops_per_rank":0.125,)"
            R"("tokens_per_second_per_rank":49.25})");
  record.memory = {.tensors_peak = 100, .reserved_peak = 120, .used = 150};
  const auto memory = nlohmann::json::parse(StepJson(record))["device_memory"];
  EXPECT_EQ(memory.dump(), R"({"reserved_peak":120,"tensors_peak":100,"used":150})");
  record.bridge_mean_squares.clear();
  record.skipped = false;
  record.speed.data_wait = 0.00249;
  EXPECT_THAT(StepLine(record, 20), HasSubstr("0.250 s  49.2 tok/s/GPU")) << "under 1 % nobody needs to know";
  record.speed.data_wait = 0.0025;
  EXPECT_THAT(StepLine(record, 20), HasSubstr("0.250 s (0.003 s for data)  49.2 tok/s/GPU"));
  record.speed = {.tokens = 9684.6, .teraflops = 408, .mfu = 0.4126, .seconds_left = 0};
  EXPECT_EQ(
      StepLine(record, 20),
      "step 3/20  samples 24  loss 0.300000  grad norm 0.3333  lr 1.000e-03  0.250 s  9685 tok/s/GPU  MFU 41.3 %");
}

Plan TwoGpus() {
  Plan plan;
  plan.world_size = 2, plan.precision = "bf16", plan.cluster.gpu = "h200_sxm";
  plan.budget.global_samples = 8, plan.budget.sequence_length = 8192, plan.budget.steps = 100;
  Module language;
  language.name = "language", language.carries_loss = true, language.head_flops = 500'000'000;
  plan.modules.push_back(language);
  return plan;
}

TEST(StepPace, OfOneStep) {
  // Forward, and the gradients of weights and input: 3 * 0.5 GFLOP a token, 98.304 TFLOP a step.
  const StepSpeed speed = StepPace(TwoGpus(), true).Of(10, 0.25, {});
  EXPECT_DOUBLE_EQ(speed.tokens, 8 * 8192 / 0.25 / 2);
  EXPECT_DOUBLE_EQ(speed.teraflops, 98.304 / 0.25 / 2);
  EXPECT_DOUBLE_EQ(speed.mfu.value(), 98.304 / 0.25 / 2 / 989.4);
  EXPECT_DOUBLE_EQ(speed.seconds_left, 90 * 0.25);
  EXPECT_FALSE(StepPace(TwoGpus(), false).Of(10, 0.25, {}).mfu) << "on CPUs, whatever the recipe names";
  Plan unknown = TwoGpus();
  unknown.cluster.gpu = "none";
  EXPECT_FALSE(StepPace(unknown, true).Of(10, 0.25, {}).mfu);
  EXPECT_EQ(StepPace(TwoGpus(), true).Of(10, 0, {}).tokens, 0) << "a clock that stood still";
}

TEST(StepPace, TheTimeLeftIsThatOfTheLastSteps) {
  StepPace pace(TwoGpus(), true);
  EXPECT_DOUBLE_EQ(pace.Of(1, 9, {}).seconds_left, 99 * 9.0);
  EXPECT_DOUBLE_EQ(pace.Of(2, 1, {}).seconds_left, 98 * 1.0) << "the first step warms up";
  EXPECT_DOUBLE_EQ(pace.Of(3, 3, {}).seconds_left, 97 * 2.0);
  for (int step = 4; step <= 40; ++step) pace.Of(step, 5, {});
  EXPECT_DOUBLE_EQ(pace.Of(41, 5, {}).seconds_left, 59 * 5.0);
  EXPECT_EQ(pace.Of(100, 5, {}).seconds_left, 0);
}

TEST(StepPace, CountsTheEvaluationsThatAreLeft) {
  Plan plan = TwoGpus();
  plan.evaluation.every_samples = 10 * plan.budget.global_samples;
  StepPace pace(plan, true);
  EXPECT_DOUBLE_EQ(pace.Of(1, 9, {}).seconds_left, 99 * 9.0) << "nobody knows how long one takes";
  pace.Evaluated(30), pace.Evaluated(50);
  EXPECT_DOUBLE_EQ(pace.Of(2, 1, {}).seconds_left, 98 * 1.0 + 10 * 40.0);
  for (int step = 3; step <= 99; ++step) pace.Of(step, 1, {});
  EXPECT_DOUBLE_EQ(pace.Of(100, 1, {}).seconds_left, 40) << "that of the last step";
}

TEST(StepLog, KeepsEvaluationsWithTheirStep) {
  const std::string run = FreshFolder(), dropped = run + "/dropped.jsonl";
  std::unique_ptr<StepLog> log;
  ASSERT_TRUE(StepLog::Open(run, log).ok());
  for (int step = 0; step <= 4; ++step) {
    if (step > 0) ASSERT_TRUE(log->Write({.step = step, .consumed_samples = 8 * step}).ok());
    if (step % 2 == 0) ASSERT_TRUE(log->WriteEvaluation({.step = step, .consumed_samples = 8 * step}).ok());
  }
  EXPECT_EQ(log->LastEvaluation()->value().step, 4);
  ASSERT_TRUE(log->KeepUpTo(24, dropped).ok());
  EXPECT_EQ(log->LastEvaluation()->value().step, 2) << "before the last step";
  ASSERT_TRUE(log->KeepUpTo(16, dropped).ok());
  EXPECT_EQ(log->LastEvaluation()->value().step, 2);
  std::ifstream file(dropped);
  int steps = 0, evaluations = 0;
  for (std::string line; std::getline(file, line);) {
    steps += ReadStepRecord(line).has_value();
    evaluations += ReadEvaluationRecord(line).has_value();
  }
  EXPECT_EQ(steps, 2);
  EXPECT_EQ(evaluations, 1);
  ASSERT_TRUE(log->KeepUpTo(-1, dropped).ok());
  EXPECT_FALSE(log->LastEvaluation()->has_value()) << "a run that begins again is evaluated again";
}

TEST(StepLog, GoesOnWithNoOtherRun) {
  const std::string run = FreshFolder(), dropped = run + "/dropped.jsonl";
  std::unique_ptr<StepLog> log;
  ASSERT_TRUE(StepLog::Open(run, log).ok());
  ASSERT_TRUE(log->Write({.step = 1, .consumed_samples = 8}).ok()) << "of a release before records said their run";
  log->SetRun("one", 1);
  for (int step = 2; step <= 4; ++step) ASSERT_TRUE(log->Write({.step = step, .consumed_samples = 8 * step}).ok());
  const absl::StatusOr<int64_t> own = log->KeepUpTo(24, dropped);
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(*own, 24);
  EXPECT_EQ(*log->KeepUpTo(8, dropped), 8);
  ASSERT_TRUE(log->Write({.step = 2, .consumed_samples = 16}).ok());
  log->SetRun("two", 1);
  std::ostringstream before;
  before << std::ifstream(StepsPath(run)).rdbuf();
  for (const int64_t samples : {16, 100, 8, -1}) {
    EXPECT_TRUE(absl::IsInvalidArgument(log->KeepUpTo(samples, dropped).status())) << samples;
  }
  std::ostringstream after;
  after << std::ifstream(StepsPath(run)).rdbuf();
  EXPECT_EQ(after.str(), before.str());
  log->SetRun("", 1);
  EXPECT_TRUE(log->KeepUpTo(16, dropped).ok()) << "nobody knows which run this is";
}

TEST(StepLog, AppendsALineAStep) {
  const std::string run = FreshFolder();
  for (int part = 0; part < 2; ++part) {
    std::unique_ptr<StepLog> log;
    ASSERT_TRUE(StepLog::Open(run, log).ok());
    ASSERT_TRUE(log->Write({.step = part + 1}).ok());
  }
  std::ifstream file(run + "/metrics.jsonl");
  std::string line;
  for (int step = 1; step <= 2; ++step) {
    ASSERT_TRUE(std::getline(file, line));
    EXPECT_EQ(nlohmann::json::parse(line)["step"], step);
  }
  EXPECT_FALSE(std::getline(file, line));
}

TEST(StepLog, KeepsTheRecordsThatItDrops) {
  const std::string run = FreshFolder(), dropped = run + "/dropped.jsonl";
  std::unique_ptr<StepLog> log;
  ASSERT_TRUE(StepLog::Open(run, log).ok());
  const auto lines = [](const std::string& path) {
    std::ifstream file(path);
    std::vector<int> steps;
    for (std::string line; std::getline(file, line);) steps.push_back(nlohmann::json::parse(line)["step"]);
    return steps;
  };
  for (int step = 1; step <= 5; ++step) ASSERT_TRUE(log->Write({.step = step, .consumed_samples = 8 * step}).ok());
  std::ofstream(run + "/metrics.jsonl", std::ios::app) << "{\"step\": 6, \"consu";
  ASSERT_TRUE(log->KeepUpTo(40, dropped).ok());
  EXPECT_FALSE(std::ifstream(dropped).good()) << "a line that was cut off is no record";
  ASSERT_TRUE(log->KeepUpTo(32, dropped).ok());
  ASSERT_TRUE(log->KeepUpTo(16, dropped).ok());
  ASSERT_TRUE(log->Write({.step = 3, .consumed_samples = 24}).ok());
  EXPECT_EQ(lines(run + "/metrics.jsonl"), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(lines(dropped), (std::vector<int>{5, 3, 4}));
  EXPECT_FALSE(log->KeepUpTo(0, run + "/none/dropped.jsonl").ok());
  EXPECT_EQ(lines(run + "/metrics.jsonl"), (std::vector<int>{1, 2, 3})) << "nothing is dropped that is not kept";
}

TEST(StepLog, ARecordWithoutItsLineBreakIsKeptWithOne) {
  const std::string run = FreshFolder();
  std::ofstream(run + "/metrics.jsonl") << StepJson({.step = 1, .consumed_samples = 8});
  std::unique_ptr<StepLog> log;
  ASSERT_TRUE(StepLog::Open(run, log).ok());
  ASSERT_TRUE(log->KeepUpTo(8, run + "/dropped.jsonl").ok());
  ASSERT_TRUE(log->Write({.step = 2, .consumed_samples = 16}).ok());
  std::ifstream file(run + "/metrics.jsonl");
  std::string line;
  for (int step = 1; step <= 2; ++step) {
    ASSERT_TRUE(std::getline(file, line));
    EXPECT_EQ(ReadStepRecord(line).value_or(StepRecord{}).step, step);
  }
}

// A life that was replaced may still write. What it writes is not in the file of the life that took its place.
TEST(StepLog, ALifeThatWasReplacedWritesToTheOldFile) {
  const std::string run = FreshFolder();
  std::unique_ptr<StepLog> old, next;
  ASSERT_TRUE(StepLog::Open(run, old).ok());
  ASSERT_TRUE(old->Write({.step = 1, .consumed_samples = 8}).ok());
  ASSERT_TRUE(StepLog::Open(run, next).ok());
  ASSERT_TRUE(next->KeepUpTo(8, run + "/dropped.jsonl").ok());
  ASSERT_TRUE(old->Write({.step = 2, .consumed_samples = 16}).ok());
  ASSERT_TRUE(next->Write({.step = 2, .consumed_samples = 32}).ok());
  std::ifstream file(run + "/metrics.jsonl");
  std::string line, last;
  while (std::getline(file, line)) last = line;
  EXPECT_EQ(ReadStepRecord(last).value_or(StepRecord{}).consumed_samples, 32);
}

TEST(StartUp, AddsUpTheParts) {
  StartUp start_up;
  for (const char* part : {"plan", "memory", "weights", "memory"}) start_up.Enter(part);
  const std::string line = start_up.Line();
  // No time of the parts is tested, only that they are there, in the order in which they came first.
  EXPECT_TRUE(std::regex_match(
      line, std::regex(R"(ready in \d+\.\d s: program \d+\.\d, plan \d+\.\d, memory \d+\.\d, weights \d+\.\d)")))
      << line;
}

}  // namespace
}  // namespace planwright::executor
