// A line of an evaluation is read as it was written, is no step, and is found and cut off with the steps around it.
#include "planner/wire/records/evaluation_record.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "planner/wire/records/step_record.h"

namespace planwright {
namespace {

EvaluationRecord Evaluation(int64_t step) {
  return {.step = step,
          .consumed_samples = 8 * step,
          .seconds = 0.25,
          .sets = {{"held_out", {1.0 / 3, 100}, {{"icons", {0.1, 60}}, {"text \"quoted\"", {0.5, 40}}}, "5f"},
                   {"nothing", {std::nullopt, 0}, {{"nothing", {std::nullopt, 0}}}}}};
}

std::string StepOf(int64_t step) { return StepJson({.step = step, .consumed_samples = 8 * step, .loss = 2}) + "\n"; }
std::string EvaluationOf(int64_t step) { return EvaluationJson(Evaluation(step)) + "\n"; }

TEST(EvaluationRecord, IsReadAsItWasWritten) {
  for (const int64_t step : {0, 7}) {
    const std::optional<EvaluationRecord> read = ReadEvaluationRecord(EvaluationJson(Evaluation(step)));
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(*read, Evaluation(step)) << EvaluationJson(*read);
  }
  EvaluationRecord record = Evaluation(1);
  record.sets[0].all.loss = std::numeric_limits<double>::infinity();
  const EvaluatedSet not_finite = ReadEvaluationRecord(EvaluationJson(record))->sets[0];
  EXPECT_FALSE(not_finite.all.loss);
  EXPECT_EQ(LossText(not_finite.all, "%.6f"), "nan");
  EXPECT_EQ(LossText(record.sets[0].all, "%.6f"), "nan") << "also before it is written";
  EXPECT_EQ(LossText({std::nullopt, 0}, "%.6f"), "-") << "there is no token to learn";
}

TEST(EvaluationRecord, AndTheRecordOfAStepAreTwoThings) {
  EXPECT_FALSE(ReadStepRecord(EvaluationJson(Evaluation(3))));
  EXPECT_FALSE(ReadEvaluationRecord(StepOf(3)));
  for (const char* line :
       {"", "{", "[\"evaluation\"]", R"({"step": 1, "consumed_samples": 8, "evaluation": 3})",
        R"({"step": -1, "consumed_samples": 8, "evaluation": {}})", R"({"step": 1, "evaluation": {}})"})
    EXPECT_FALSE(ReadEvaluationRecord(line).has_value()) << line;
  const std::optional<EvaluationRecord> odd =
      ReadEvaluationRecord(R"({"step": 1, "consumed_samples": 8, "evaluation": {"a": 7, "b": {"sources": []}}})");
  ASSERT_TRUE(odd.has_value());
  EXPECT_EQ(odd->sets.size(), 2U);
  EXPECT_FALSE(odd->sets[0].all.loss || odd->sets[1].all.loss);
}

TEST(EvaluationRecord, IsALineForPeople) {
  EXPECT_EQ(
      EvaluationLine(Evaluation(7), 20),
      "evaluation of step 7/20  held_out 0.333333 (icons 0.100000, text \"quoted\" 0.500000)  nothing -  0.250 s");
  EXPECT_EQ(EvaluationLine(Evaluation(0), 0).find("evaluation  held_out 0.3"), 0U) << EvaluationLine(Evaluation(0), 0);
}

class EvaluationsInAFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "evaluationsXXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  LineFile Open(const std::string& text) {
    std::ofstream(StepsPath(folder_)) << text;
    absl::StatusOr<LineFile> file = LineFile::Open(StepsPath(folder_));
    EXPECT_TRUE(file.ok());
    return *std::move(file);
  }
  std::string folder_;
};

TEST_F(EvaluationsInAFile, AreFoundFromTheEnd) {
  const auto newest = [&](const std::string& text) {
    LineFile file = Open(text);
    return *NewestEvaluation(file);
  };
  const std::string text = EvaluationOf(0) + StepOf(1) + StepOf(2);
  EXPECT_EQ(newest(text)->step, 0);
  EXPECT_EQ(newest(text + EvaluationOf(2) + StepOf(3) + "{broken\n" + StepOf(4)), Evaluation(2));
  EXPECT_FALSE(newest(StepOf(1)).has_value());
  EXPECT_FALSE(newest("").has_value());
}

TEST_F(EvaluationsInAFile, GoWithTheStepsBeforeThem) {
  const std::string to_two = EvaluationOf(0) + StepOf(1) + StepOf(2) + EvaluationOf(2);
  LineFile file = Open(to_two + StepOf(3) + StepOf(4) + EvaluationOf(4));
  const auto kept = [&](int64_t samples) { return static_cast<size_t>(FindKeptSteps(file, samples)->bytes); };
  EXPECT_EQ(kept(16), to_two.size()) << "the evaluation of the last step that is kept stays";
  EXPECT_EQ(kept(31), (to_two + StepOf(3)).size());
  EXPECT_EQ(kept(0), EvaluationOf(0).size());
  EXPECT_EQ(kept(-1), 0U);
}

}  // namespace
}  // namespace planwright
