// metrics.jsonl as it is found: whole, being written, damaged, or something else.
#include "planner/views/report/step_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "planner/wire/records/step_record.h"

namespace planwright {
namespace {

using ::testing::DoubleEq;
using ::testing::HasSubstr;
using ::testing::Optional;

class StepFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "stepsXXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  struct Steps : StepFile {
    std::vector<StepPoint> steps;
    std::vector<int64_t> evaluations;  // their steps
  };
  Steps Read(const std::string& text, int64_t most = 0, const std::string& run_id = "") {
    std::ofstream(folder_ + "/metrics.jsonl") << text;
    Steps read;
    const auto add = [&](const StepPoint& point) {
      read.steps.push_back(point);
      return true;
    };
    const absl::StatusOr<StepFile> file =
        ReadSteps(folder_ + "/metrics.jsonl", run_id, add, most,
                  [&](const EvaluationRecord& evaluation) { read.evaluations.push_back(evaluation.step); });
    EXPECT_TRUE(file.ok()) << file.status();
    if (file.ok()) static_cast<StepFile&>(read) = *file;
    return read;
  }
  static std::string Line(int64_t step) {
    return "{\"step\": " + std::to_string(step) + ", \"consumed_samples\": " + std::to_string(8 * step) +
           ", \"loss\": 5.5, \"grad_norm\": 1.25, \"learning_rate\": 0.001, \"step_seconds\": 0.5, \"skipped\": "
           "false}\n";
  }

  std::string folder_;
};

TEST_F(StepFileTest, ReadsEvaluationsBetweenSteps) {
  const auto evaluation = [](int64_t step) {
    return EvaluationJson({.step = step, .consumed_samples = 8 * step, .sets = {{"held_out", {2.5, 10}, {}}}}) + "\n";
  };
  const Steps file = Read(evaluation(0) + Line(1) + Line(2) + evaluation(2) + Line(3) + evaluation(3));
  EXPECT_EQ(file.steps.size(), 3U);
  EXPECT_EQ(file.evaluations, (std::vector<int64_t>{0, 2, 3}));
  EXPECT_EQ(file.unreadable, 0);
  const Steps wrong = Read(evaluation(0) + Line(1) + evaluation(0) + Line(2) + evaluation(1) + evaluation(2));
  EXPECT_EQ(wrong.evaluations, (std::vector<int64_t>{0, 2})) << "those of earlier steps are out of place";
  EXPECT_EQ(wrong.unreadable, 2);
  EXPECT_EQ(wrong.first_unreadable, 3);
}

TEST_F(StepFileTest, ReadsEachStep) {
  const Steps file = Read(Line(1) + Line(2));
  ASSERT_EQ(file.steps.size(), 2U);
  EXPECT_EQ(file.steps[1].step, 2);
  EXPECT_EQ(file.steps[1].samples, 16);
  EXPECT_THAT(file.steps[1].loss, Optional(DoubleEq(5.5)));
  EXPECT_THAT(file.steps[1].grad_norm, Optional(DoubleEq(1.25)));
  EXPECT_THAT(file.steps[1].learning_rate, Optional(DoubleEq(0.001)));
  EXPECT_EQ(file.steps[1].seconds, 0.5);
  EXPECT_FALSE(file.steps[1].skipped);
  EXPECT_EQ(file.unreadable, 0);
  EXPECT_FALSE(file.cut_off);
}

TEST_F(StepFileTest, NumbersThatAreNotFiniteAreUnknown) {
  const Steps file = Read(
      "{\"step\": 3, \"consumed_samples\": 24, \"loss\": null, \"grad_norm\": 1e305, \"step_seconds\": -1, "
      "\"skipped\": true}\n");
  ASSERT_EQ(file.steps.size(), 1U);
  EXPECT_FALSE(file.steps[0].loss.has_value());
  EXPECT_FALSE(file.steps[0].grad_norm.has_value()) << "differences of such numbers overflow";
  EXPECT_FALSE(file.steps[0].learning_rate.has_value());
  EXPECT_EQ(file.steps[0].seconds, 0);
  EXPECT_TRUE(file.steps[0].skipped);
}

TEST_F(StepFileTest, ALastLineThatIsBeingWrittenIsNoDamage) {
  const Steps file = Read(Line(1) + Line(2).substr(0, 20));
  EXPECT_EQ(file.steps.size(), 1U);
  EXPECT_EQ(file.unreadable, 0);
  EXPECT_TRUE(file.cut_off);
}

TEST_F(StepFileTest, DamagedLinesAreCounted) {
  const std::string zeros(100, '\0');
  const Steps file = Read(Line(1) + zeros + "\n" + "[1, 2]\n" + "{\"step\": \"2\", \"consumed_samples\": 16}\n" +
                          "{\"step\": 1e99, \"consumed_samples\": 16}\n" + "{\"step\": 2}\n" + std::string(5000, '[') +
                          "\n" + Line(2) + Line(2) + Line(1) + Line(3));
  ASSERT_EQ(file.steps.size(), 3U);
  EXPECT_EQ(file.steps[2].step, 3);
  EXPECT_EQ(file.unreadable, 8) << "a step that was there before counts, too";
  EXPECT_EQ(file.first_unreadable, 2);
}

TEST_F(StepFileTest, ReadsTheEndOfALongFile) {
  std::string text;
  for (int step = 1; step <= 1000; ++step) text += Line(step);
  const Steps file = Read(text, static_cast<int64_t>(3 * Line(1000).size()));
  ASSERT_GE(file.steps.size(), 2U);
  EXPECT_LE(file.steps.size(), 3U);
  EXPECT_EQ(file.steps.back().step, 1000);
  EXPECT_EQ(file.unreadable, 0) << "the line that the begin cuts is not read";
  EXPECT_EQ(Read(text, int64_t{1} << 30).steps.size(), 1000U);
  EXPECT_TRUE(Read(std::string(1000, 'x'), 10).steps.empty());
}

TEST_F(StepFileTest, ALineThatIsTooLongIsNoRecord) {
  const Steps file = Read(Line(1) + "{\"x\": \"" + std::string(3 << 20, 'y') + "\"}\n" + Line(2));
  EXPECT_EQ(file.steps.size(), 2U);
  EXPECT_EQ(file.unreadable, 1);
  EXPECT_EQ(file.first_unreadable, 2);
}

// Copied here by a person, or by a tool that joins files.
TEST_F(StepFileTest, RecordsOfAnotherRunArePassedOver) {
  const std::string own(32, 'a'), other(32, 'b');
  const auto step = [](int64_t number, const std::string& run_id) {
    StepRecord record;
    record.step = number, record.consumed_samples = 8 * number, record.run_id = run_id;
    return StepJson(record) + "\n";
  };
  const auto evaluation = [](int64_t number, const std::string& run_id) {
    return EvaluationJson({.step = number, .consumed_samples = 8 * number, .run_id = run_id}) + "\n";
  };
  const std::string text = Line(1) + step(2, own) + step(2, other) + evaluation(2, other) + step(3, other) +
                           step(3, own) + evaluation(3, own);
  const Steps file = Read(text, 0, own);
  EXPECT_EQ(file.steps.size(), 3U);
  EXPECT_EQ(file.evaluations, std::vector<int64_t>{3});
  EXPECT_EQ(file.of_another, 3);
  EXPECT_EQ(file.another, other);
  EXPECT_EQ(file.unnamed, 1) << "that of an earlier release";
  EXPECT_EQ(file.unreadable, 0);
  EXPECT_EQ(Read(text).of_another, 0) << "nobody knows which run is meant";
}

TEST_F(StepFileTest, StopsWhereItIsTold) {
  std::ofstream(folder_ + "/metrics.jsonl") << Line(1) << Line(2) << Line(3);
  int seen = 0;
  ASSERT_TRUE(ReadSteps(folder_ + "/metrics.jsonl", "", [&](const StepPoint&) { return ++seen < 2; }).ok());
  EXPECT_EQ(seen, 2);
}

TEST_F(StepFileTest, TellsAMissingFileFromOneThatCannotBeRead) {
  const auto status = [&] {
    return ReadSteps(folder_ + "/metrics.jsonl", "", [](const StepPoint&) { return true; }).status();
  };
  EXPECT_TRUE(absl::IsNotFound(status()));
  std::filesystem::create_directories(folder_ + "/metrics.jsonl");
  const absl::Status folder = status();
  EXPECT_TRUE(absl::IsUnavailable(folder)) << folder;
  EXPECT_THAT(std::string(folder.message()), HasSubstr("metrics.jsonl"));
}

}  // namespace
}  // namespace planwright
