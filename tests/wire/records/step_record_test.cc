// A line of metrics.jsonl is read as it was written, and the records to keep are found from the end of the file.
#include "planner/wire/records/step_record.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

namespace planwright {
namespace {

StepRecord FullRecord() {
  return {.step = 3,
          .consumed_samples = 24,
          .loss = 0.1,
          .grad_norm = 1.0 / 3,
          .module_grad_norms = {{"language", 5e-324}, {"radio \"encoder\"", 1e308}},
          .learning_rate = 1.2e-3,
          .step_seconds = 0.25,
          .speed = {.tokens = 49.25, .teraflops = 0.125, .mfu = 0.3, .seconds_left = 4.25, .data_wait = 0.125},
          .skipped = true,
          .routing = 0xfedcba9876543210,
          .aux_loss = 1.25,
          .bridge_mean_squares = {{"a->b", 0.75}, {"c->b", std::nullopt}},
          .source_losses = {{"icons", 0.125}, {"text \"b\"", std::nullopt}},
          .memory = DeviceMemory{100, 120, 150'000'000'000}};
}

TEST(StepRecord, IsReadAsItWasWritten) {
  StepRecord small{.step = 1, .consumed_samples = 8};
  for (const StepRecord& record : {FullRecord(), small}) {
    const std::optional<StepRecord> read = ReadStepRecord(StepJson(record));
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(*read, record) << StepJson(record) << "\n" << StepJson(*read);
  }
}

TEST(StepRecord, NumbersThatAreNotFiniteAreNull) {
  StepRecord record = FullRecord();
  record.loss = std::numeric_limits<double>::infinity();
  record.grad_norm = -std::numeric_limits<double>::infinity();
  record.module_grad_norms[0].second = std::nan("");
  record.aux_loss.reset();
  const std::optional<StepRecord> read = ReadStepRecord(StepJson(record));
  ASSERT_TRUE(read.has_value());
  EXPECT_FALSE(read->loss || read->aux_loss);
  EXPECT_TRUE(std::isnan(read->grad_norm) && std::isnan(read->module_grad_norms[0].second));
  EXPECT_EQ(read->module_grad_norms[1].second, 1e308);
}

TEST(StepRecord, OfAnEarlierVersionIsRead) {
  const std::optional<StepRecord> read = ReadStepRecord(
      R"({"step": 2, "consumed_samples": 16, "loss": null, "grad_norm": "x", "pace": 3, "skipped": 1, "routing": 7,
          "device_memory": [], "another": {"field": [1]}})");
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->consumed_samples, 16);
  EXPECT_FALSE(read->loss || read->memory || read->skipped);
  EXPECT_TRUE(std::isnan(read->grad_norm) && std::isnan(read->step_seconds));
  EXPECT_EQ(read->routing, 0U);
  EXPECT_FALSE(ReadStepRecord(R"({"step": 2, "consumed_samples": 16, "pace": {"mfu": 0.5}})")->speed.data_wait);
}

TEST(StepRecord, NeedsAStepAndSamples) {
  for (const char* line :
       {"", "{", "[]", "{}", R"({"step": 1})", R"({"step": 0, "consumed_samples": 8})",
        R"({"step": 1.5, "consumed_samples": 8})", R"({"step": 1, "consumed_samples": 18446744073709551615})",
        R"({"step": 1e400, "consumed_samples": 8})", R"({"step": 1, "consumed_samples": 8} x)"})
    EXPECT_FALSE(ReadStepRecord(line).has_value()) << line;
}

class KeptStepsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "keptXXXXXX";
    folder_ = mkdtemp(pattern.data());
    path_ = StepsPath(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static std::string Line(int64_t step) { return StepJson({.step = step, .consumed_samples = 8 * step}) + "\n"; }

  std::string folder_, path_;
};

TEST_F(KeptStepsTest, AreFoundFromTheEnd) {
  const std::string two = Line(1) + Line(2), text = two + "{broken\n" + Line(3) + Line(4).substr(0, 30);
  std::ofstream(path_) << text;
  const auto kept = [&](int64_t samples) {
    absl::StatusOr<LineFile> file = LineFile::Open(path_);
    return static_cast<size_t>(FindKeptSteps(*file, samples)->bytes);
  };
  EXPECT_EQ(kept(100), text.size() - 30) << "the last line was cut off";
  EXPECT_EQ(kept(24), text.size() - 30);
  EXPECT_EQ(kept(23), two.size()) << "what is no record goes, too";
  EXPECT_EQ(kept(8), Line(1).size());
  EXPECT_EQ(kept(7), 0U);
  std::ofstream(path_) << Line(1) << Line(2).substr(0, Line(2).size() - 1);
  absl::StatusOr<LineFile> file = LineFile::Open(path_);
  const absl::StatusOr<KeptSteps> whole = FindKeptSteps(*file, 100);
  EXPECT_EQ(static_cast<size_t>(whole->bytes), two.size() - 1) << "only the line break is missing";
  EXPECT_FALSE(whole->whole);
}

TEST_F(KeptStepsTest, SayOfWhichRunTheLastOneIs) {
  StepRecord record{.step = 2, .consumed_samples = 16};
  record.run_id = std::string(32, 'a'), record.life = 3;
  const std::string line = StepJson(record);
  EXPECT_EQ(ReadStepRecord(line)->run_id, record.run_id);
  EXPECT_EQ(ReadStepRecord(line)->life, 3);
  EXPECT_EQ(ReadStepRecord(Line(1))->life, 0);
  EXPECT_EQ(ReadStepRecord(Line(1))->run_id, "");
  std::ofstream(path_) << Line(1) << line << "\n";
  const auto last = [&](int64_t samples) {
    absl::StatusOr<LineFile> file = LineFile::Open(path_);
    return FindKeptSteps(*file, samples)->last;
  };
  EXPECT_EQ(last(16).run_id, record.run_id);
  EXPECT_EQ(last(16).samples, 16);
  EXPECT_EQ(last(8).run_id, "");
  EXPECT_EQ(last(8).samples, 8);
  EXPECT_EQ(last(7).samples, 0);
}

// However long the file is: what is read and held follows from what is dropped.
TEST_F(KeptStepsTest, AreFoundWithoutReadingTheRest) {
  std::ofstream out(path_);
  for (int64_t step = 1; step <= 20'000; ++step) out << Line(step);
  out.close();
  absl::StatusOr<LineFile> file = LineFile::Open(path_);
  ASSERT_TRUE(file.ok());
  ASSERT_GT(file->bytes(), 5'000'000);
  const absl::StatusOr<KeptSteps> kept = FindKeptSteps(*file, 8 * 19'990);
  ASSERT_TRUE(kept.ok());
  EXPECT_EQ(file->bytes() - kept->bytes, static_cast<int64_t>(10 * Line(19'999).size()));
  EXPECT_LE(file->bytes_read(), 1 << 16);
  EXPECT_LE(file->most_held(), 1 << 16);
  absl::StatusOr<LineFile> again = LineFile::Open(path_);
  EXPECT_EQ(FindKeptSteps(*again, 1)->bytes, 0);
  EXPECT_EQ(again->bytes_read(), again->bytes()) << "no byte is read twice";
  EXPECT_LE(again->most_held(), 4 << 16);
}

}  // namespace
}  // namespace planwright
