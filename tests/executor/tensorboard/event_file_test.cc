#include "executor/tensorboard/event_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "event.pb.h"

namespace planwright::executor {
namespace {

namespace fs = std::filesystem;
using tensorboard::Event;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string FreshFolder() {
  std::string folder = ::testing::TempDir() + "eventsXXXXXX";
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  return folder;
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Plan SmallPlan() {
  Plan plan;
  plan.budget.global_samples = 8, plan.budget.steps = 100;
  return plan;
}

// Taken apart without the code that wrote it: the checksums are tested apart.
std::vector<Event> EventsOf(const std::string& text) {
  std::vector<Event> events;
  for (size_t at = 0; at < text.size();) {
    uint64_t length = 0;
    std::memcpy(&length, text.data() + at, 8);
    const std::string bytes = text.substr(at + 12, length);
    EXPECT_EQ(text.substr(at, length + 16), TfRecord(bytes));
    EXPECT_TRUE(events.emplace_back().ParseFromString(bytes));
    at += length + 16;
  }
  return events;
}

// "lm loss at 3 = 0.5"
std::vector<std::string> ScalarsOf(const Event& event) {
  std::vector<std::string> scalars;
  for (const auto& value : event.summary().value()) {
    std::ostringstream text;
    text << value.tag() << " at " << event.step() << " = " << value.simple_value();
    scalars.push_back(text.str());
  }
  return scalars;
}

TEST(TfRecord, IsThatOfTensorFlow) {
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283U);  // the check value of CRC-32C
  EXPECT_EQ(Crc32c(""), 0U);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aaU);  // RFC 3720, B.4
  Event event;
  event.set_file_version("brain.Event:2");
  const std::string bytes = event.SerializeAsString();
  EXPECT_EQ(bytes, std::string("\x1a\x0d") + "brain.Event:2");
  const std::string record = TfRecord(bytes);
  ASSERT_EQ(record.size(), bytes.size() + 16);
  EXPECT_EQ(record.substr(0, 8), std::string("\x0f\0\0\0\0\0\0\0", 8));
}

TEST(EventFile, HasEveryScalarOfAStep) {
  const std::string run = FreshFolder();
  std::ofstream(run + "/metrics.jsonl");
  const Plan plan = SmallPlan();
  EventFile file(plan, run, 1, "node7");
  ASSERT_TRUE(file.Begin(0).ok());
  const StepRecord record = {
      .step = 3,
      .consumed_samples = 24,
      .loss = 0.5,
      .grad_norm = 2,
      .module_grad_norms = {{"language", 1.5}},
      .learning_rate = 0.25,
      .step_seconds = 4,
      .speed = {.tokens = 100, .teraflops = 7, .mfu = 0.375, .seconds_left = 1, .data_wait = 0.5},
      .skipped = true,
      .aux_loss = 1.25,
      .bridge_mean_squares = {{"a->b", 0.75}, {"c->b", std::nullopt}},
      .source_losses = {{"icons", 0.25}, {"text", std::nullopt}},
      .memory = DeviceMemory{100, 200, 300}};
  ASSERT_TRUE(file.Write(record).ok());
  // In the file, before it is closed.
  const std::vector<Event> events = EventsOf(ReadAll(run + "/tensorboard/events.out.tfevents.0000000001.node7"));
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[0].file_version(), "brain.Event:2");
  EXPECT_EQ(events[1].session_log().status(), tensorboard::SessionLog::START);
  EXPECT_EQ(events[1].step(), 1);
  EXPECT_GT(events[2].wall_time(), 1.6e9);
  EXPECT_THAT(ScalarsOf(events[2]),
              ElementsAre("lm loss at 3 = 0.5", "learning-rate at 3 = 0.25", "batch-size at 3 = 8",
                          "grad-norm at 3 = 2", "grad-norm/language at 3 = 1.5", "iteration-time at 3 = 4",
                          "data-wait at 3 = 0.5", "throughput at 3 = 7", "tokens-per-second-per-gpu at 3 = 100",
                          "mfu at 3 = 0.375", "skipped-iterations at 3 = 1", "seq_load_balancing_loss at 3 = 1.25",
                          "bridge-mean-square/a->b at 3 = 0.75", "lm loss/icons at 3 = 0.25",
                          "mem-max-allocated-bytes at 3 = 100", "mem-max-reserved-bytes at 3 = 200",
                          "mem-used-bytes at 3 = 300"));
  EXPECT_THAT(ScalarsOf(events[3]),
              ElementsAre("lm loss vs samples at 24 = 0.5", "learning-rate vs samples at 24 = 0.25",
                          "batch-size vs samples at 24 = 8", "grad-norm vs samples at 24 = 2"));
  EXPECT_TRUE(file.Close().ok());
  EXPECT_TRUE(file.Close().ok()) << "nothing is left to close";
}

TEST(EventFile, HasTheLossOfEachSetAndSource) {
  const std::string run = FreshFolder();
  std::ofstream(run + "/metrics.jsonl");
  const Plan plan = SmallPlan();
  EventFile file(plan, run, 1, "node7");
  ASSERT_TRUE(file.Begin(0).ok());
  ASSERT_TRUE(file.WriteEvaluation({.step = 4,
                                    .consumed_samples = 32,
                                    .seconds = 0.5,
                                    .sets = {{"held_out", {2.5, 8}, {{"icons", {2, 4}}, {"text", {3, 4}}}},
                                             {"one", {1.5, 8}, {{"icons", {1.5, 8}}}},
                                             {"empty", {std::nullopt, 0}, {}}}})
                  .ok());
  const std::vector<Event> events = EventsOf(ReadAll(run + "/tensorboard/events.out.tfevents.0000000001.node7"));
  ASSERT_EQ(events.size(), 3U);
  EXPECT_THAT(ScalarsOf(events[2]),
              ElementsAre("lm loss validation/held_out at 4 = 2.5", "lm loss validation/held_out/icons at 4 = 2",
                          "lm loss validation/held_out/text at 4 = 3", "lm loss validation/one at 4 = 1.5",
                          "validation-time at 4 = 0.5"));
}

// What TensorBoard forgets of the curves over samples, as it compares their samples with a step, is written again.
TEST(EventFile, OfALaterLifeGoesOn) {
  const std::string run = FreshFolder();
  std::ofstream(run + "/metrics.jsonl")
      << R"({"step": 1, "consumed_samples": 2, "loss": 5, "grad_norm": 1, "learning_rate": 0.5})"
      << "\n"
      << R"({"step": 2, "consumed_samples": 4, "loss": 4, "grad_norm": 1, "learning_rate": 0.5})"
      << "\n"
      << "{broken\n"
      << R"({"step": 3, "consumed_samples": 6, "loss": null, "grad_norm": null, "learning_rate": 0.5})"
      << "\n";
  const Plan plan = SmallPlan();
  EventFile file(plan, run, 2, "node7");
  ASSERT_TRUE(file.Begin(3).ok());
  const std::vector<Event> events = EventsOf(ReadAll(run + "/tensorboard/events.out.tfevents.0000000002.node7"));
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[1].step(), 4);
  EXPECT_THAT(ScalarsOf(events[2]), ElementsAre("lm loss vs samples at 4 = 4", "learning-rate vs samples at 4 = 0.5",
                                                "batch-size vs samples at 4 = 2", "grad-norm vs samples at 4 = 1"));
  EXPECT_THAT(ScalarsOf(events[3]), ElementsAre("learning-rate vs samples at 6 = 0.5", "batch-size vs samples at 6 = 2",
                                                "grad-norm vs samples at 6 = nan"));
}

// However long the run is, a bounded number of points is written again, from all of it.
TEST(EventFile, OfALongRunWritesEvenlyChosenPointsAgain) {
  const std::string run = FreshFolder();
  constexpr int64_t kSteps = 50'000;
  {
    std::ofstream steps(run + "/metrics.jsonl");
    for (int64_t step = 1; step <= kSteps; ++step)
      steps << "{\"step\": " << step << ", \"consumed_samples\": " << 2 * step << ", \"loss\": 1}\n";
  }
  const Plan plan = SmallPlan();
  EventFile file(plan, run, 2, "node7");
  ASSERT_TRUE(file.Begin(10).ok());
  const std::vector<Event> events = EventsOf(ReadAll(run + "/tensorboard/events.out.tfevents.0000000002.node7"));
  EXPECT_GT(events.size(), 9'000U);
  EXPECT_LE(events.size(), 10'002U);
  int64_t before = 0;
  for (size_t i = 2; i < events.size(); ++i) {
    EXPECT_GT(events[i].step(), before);
    EXPECT_LT(events[i].step(), before + 40) << "a hole";
    before = events[i].step();
    for (const std::string& scalar : ScalarsOf(events[i])) {
      if (scalar.starts_with("batch-size")) {
        EXPECT_TRUE(scalar.ends_with(" = 2")) << scalar;
      }
    }
  }
  EXPECT_GT(before, 2 * kSteps - 40);
}

TEST(EventFile, SaysWhenItCannotBeWritten) {
  const Plan plan = SmallPlan();
  const std::string run = FreshFolder();
  std::ofstream(run + "/metrics.jsonl");
  fs::create_directories(run + "/tensorboard/events.out.tfevents.0000000001.here");
  const absl::Status folder = EventFile(plan, run, 1, "here").Begin(0);
  EXPECT_TRUE(absl::IsResourceExhausted(folder));
  EXPECT_THAT(std::string(folder.message()), HasSubstr("events.out.tfevents.0000000001.here"));
  std::ofstream(run + "/file");
  EXPECT_TRUE(absl::IsResourceExhausted(EventFile(plan, run + "/file", 1, "here").Begin(0)));
  EXPECT_TRUE(absl::IsResourceExhausted(EventFile(plan, FreshFolder(), 1, "here").Begin(0))) << "no metrics.jsonl";
}

}  // namespace
}  // namespace planwright::executor
