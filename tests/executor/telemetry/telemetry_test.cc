#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "executor/telemetry/recorder.h"
#include "executor/telemetry/step_log.h"

namespace planwright::executor {
namespace {

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
    (*recorder)->Begin(RecorderState::kWaiting, 12, 1, 5, "step 12 > language.layers.3 language.moe.forward", 4,
                       "all_gather n -> n_full over language.tp");
    raise(SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));

  std::ifstream file(RecorderPath(run, 3), std::ios::binary);
  std::vector<char> bytes(kRecorderFileBytes);
  file.read(bytes.data(), kRecorderFileBytes);
  ASSERT_EQ(file.gcount(), kRecorderFileBytes);
  const auto* page = reinterpret_cast<const RecorderPage*>(bytes.data());
  EXPECT_EQ(std::memcmp(page->magic, kRecorderMagic, sizeof kRecorderMagic), 0);
  EXPECT_EQ(page->sequence.load() % 2, 0u);
  EXPECT_EQ(page->state, static_cast<int32_t>(RecorderState::kWaiting));
  EXPECT_EQ(page->pid, child);
  EXPECT_EQ(page->step, 12);
  EXPECT_EQ(page->origin, 5);
  EXPECT_STREQ(page->host, "node7");
  EXPECT_STREQ(page->path, "step 12 > language.layers.3 language.moe.forward 4");
  EXPECT_STREQ(page->instruction, "all_gather n -> n_full over language.tp");
}

TEST(Recorder, CutsLongTextAndSaysWhenItCannotWrite) {
  const std::string run = FreshFolder();
  auto recorder = Recorder::Open(run, 0, std::string(1000, 'h'));
  ASSERT_TRUE(recorder.ok());
  (*recorder)->Begin(RecorderState::kRunning, 1, -1, -1, std::string(5000, 'p'), 1, std::string(5000, 'i'));
  (*recorder)->Fail(12, std::string(9000, 'm').c_str());
  EXPECT_EQ(std::strlen((*recorder)->page().host), 63u);
  EXPECT_EQ(std::strlen((*recorder)->page().path), 255u);
  EXPECT_EQ(std::strlen((*recorder)->page().message), 2047u);
  EXPECT_EQ((*recorder)->page().exit_code, 12);
  EXPECT_EQ(Recorder::Open("/proc/nowhere", 0, "h").status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(StepLog, WritesAllDigits) {
  StepRecord record{.step = 3, .consumed_samples = 24, .loss = 0.1 + 0.2, .grad_norm = 1.0 / 3,
                    .module_grad_norms = {{"language", std::nan("")}, {"radio \"x\"", 2.5}}, .learning_rate = 1e-3,
                    .step_seconds = 0.25, .skipped = true, .routing = 0xdeadbeefULL};
  const auto json = nlohmann::json::parse(StepJson(record));
  EXPECT_EQ(json["loss"].get<double>(), 0.1 + 0.2);
  EXPECT_EQ(json["grad_norm"].get<double>(), 1.0 / 3);
  EXPECT_TRUE(json["module_grad_norms"]["language"].is_null());
  EXPECT_EQ(json["module_grad_norms"]["radio \"x\""].get<double>(), 2.5);
  EXPECT_EQ(json["routing"], "00000000deadbeef");
  EXPECT_TRUE(json["aux_loss"].is_null());
  EXPECT_EQ(json["skipped"], true);
  EXPECT_EQ(StepLine(record, 20),
            "step 3/20  samples 24  loss 0.300000  grad norm 0.3333  lr 1.000e-03  0.250 s  SKIPPED, not finite: language");
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

}  // namespace
}  // namespace planwright::executor
