// Expert choices of one run, made again by another in any layout (docs/model/mixture_of_experts.md#replay).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "tests/numerics/layouts.h"
#include "tests/numerics/run.h"

namespace planwright::testing {
namespace {

using ::testing::HasSubstr;

constexpr int kSteps = 4, kExperts = 8;
const std::vector<std::string> kOverrides = {"precision.params=fp64", "batch.micro_samples=2"};

class Replay : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "replayXXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  TrainingRun Run(const std::vector<std::string>& layout, const char* option, int steps = kSteps,
                  const char* recipe = kTinyRecipe) const {
    return Launch({.recipe = recipe,
                   .overrides = Join(kOverrides, layout),
                   .steps = steps,
                   .options = {option, folder_.string()}});
  }
  // A decoder, whose router is a softmax without a bias.
  TrainingRun RunDecoder(const std::vector<std::string>& layout, const char* option) const {
    return Run(layout, option, kSteps, "recipes/qwen3_moe_tiny.yaml");
  }
  // Other choices: expert e becomes e + 1. Those of a token stay distinct.
  void TurnChoices() const {
    for (const auto& file : std::filesystem::directory_iterator(folder_)) {
      if (file.path().extension() != ".i16") continue;
      std::fstream stream(file.path(), std::ios::in | std::ios::out | std::ios::binary);
      std::vector<int16_t> ids(std::filesystem::file_size(file.path()) / sizeof(int16_t));
      const auto bytes = static_cast<std::streamsize>(ids.size() * sizeof(int16_t));
      stream.read(reinterpret_cast<char*>(ids.data()), bytes);
      for (int16_t& id : ids) id = static_cast<int16_t>((id + 1) % kExperts);
      stream.seekp(0).write(reinterpret_cast<const char*>(ids.data()), bytes);
    }
  }

  std::filesystem::path folder_;
};

TEST_F(Replay, AnotherLayoutMakesTheSameChoices) {
  const TrainingRun recorded = Run(OneRankOnly(), "--record-routing");
  ASSERT_EQ(recorded.exit_code, 0) << recorded.output;
  TurnChoices();  // nobody would choose these by himself
  const TrainingRun one = Run(OneRankOnly(), "--replay-routing");
  ASSERT_EQ(one.exit_code, 0) << one.output;
  for (size_t i = 0; i < one.steps.size(); ++i) EXPECT_NE(one.steps[i].routing, recorded.steps[i].routing) << i;
  for (const std::vector<std::string>& layout :
       {Join(EncoderOn(2, 2), LanguageOn(2, 4, 2, 2)), Join(EncoderOn(1, 1), LanguageOn(1, 2, 1, 2)),
        Join(EncoderOn(1, 1), LanguageOn(1, 4, 2, 4), {"modules.language.parallel.dispatch=all_gather"}),
        Join(EncoderOn(1, 1), LanguageOn(1, 2, 1, 1), {"modules.language.parallel.cp=2"})}) {
    SCOPED_TRACE(layout.back());
    const TrainingRun other = Run(layout, "--replay-routing");
    ASSERT_EQ(other.exit_code, 0) << other.output;
    const Comparison comparison = Compare(other, one, 1e-9);
    EXPECT_THAT(comparison.differences, ::testing::IsEmpty());
    EXPECT_FALSE(comparison.parted_at);
  }
}

TEST_F(Replay, ALayoutRecordsWhatOneRankDoes) {
  const TrainingRun cut = Run(Join(EncoderOn(2, 2), LanguageOn(2, 4, 2, 2)), "--record-routing");
  ASSERT_EQ(cut.exit_code, 0) << cut.output;
  const TrainingRun free =
      Launch({.recipe = kTinyRecipe, .overrides = Join(kOverrides, OneRankOnly()), .steps = kSteps});
  const TrainingRun one = Run(OneRankOnly(), "--replay-routing");
  ASSERT_EQ(one.exit_code, 0) << one.output;
  EXPECT_THAT(Compare(one, free, 1e-12).differences, ::testing::IsEmpty());
}

TEST_F(Replay, SoftmaxRoutersRecordAndMakeTheSameChoices) {
  const TrainingRun recorded = RunDecoder(LanguageOn(0, 2, 2, 2), "--record-routing");
  ASSERT_EQ(recorded.exit_code, 0) << recorded.output;
  TurnChoices();
  const TrainingRun one = RunDecoder(LanguageOn(0, 1, 1, 1), "--replay-routing");
  ASSERT_EQ(one.exit_code, 0) << one.output;
  for (size_t i = 0; i < one.steps.size(); ++i) EXPECT_NE(one.steps[i].routing, recorded.steps[i].routing) << i;
  for (const std::vector<std::string>& layout :
       {LanguageOn(0, 4, 2, 4), Join(LanguageOn(0, 2, 1, 2), {"modules.language.parallel.dispatch=all_gather"}),
        Join(LanguageOn(0, 2, 1, 1), {"modules.language.parallel.cp=2"})}) {
    SCOPED_TRACE(layout.back());
    const TrainingRun other = RunDecoder(layout, "--replay-routing");
    ASSERT_EQ(other.exit_code, 0) << other.output;
    const Comparison comparison = Compare(other, one, 1e-9);
    EXPECT_THAT(comparison.differences, ::testing::IsEmpty());
    EXPECT_FALSE(comparison.parted_at);
    // What routers made is probed in the order of tokens, whatever the layout.
    for (const char* value : {"outputs/language.layer1.expert_ids", "outputs/language.layer1.expert_weights"}) {
      EXPECT_LT(Distance(other.values_last.at(value), one.values_last.at(value)), 1e-9) << value;
    }
  }
}

// Exit code 2: no rank has started.
TEST_F(Replay, ChoicesThatDoNotFitAreRefusedByTheLauncher) {
  ASSERT_EQ(Run(OneRankOnly(), "--record-routing", 2).exit_code, 0);
  const TrainingRun same = Run(OneRankOnly(), "--replay-routing", 2);
  EXPECT_EQ(same.exit_code, 0) << same.output;
  const TrainingRun longer = Run(OneRankOnly(), "--replay-routing", 3);
  EXPECT_EQ(longer.exit_code, 2);
  EXPECT_THAT(longer.output, HasSubstr("steps: expected at least 3, found 2"));
  const TrainingRun other =
      Run(Join(OneRankOnly(), {"data.seed=5", "batch.sequence_length=64"}), "--replay-routing", 2);
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.output, HasSubstr("batch.sequence_length: expected 64, found 48"));
  EXPECT_THAT(other.output, HasSubstr("data.seed: expected 5, found 1234"));
  const TrainingRun again = Run(OneRankOnly(), "--record-routing", 2);
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_THAT(again.output, HasSubstr("already holds recorded choices"));
  std::filesystem::remove_all(folder_);
  const TrainingRun nothing = Run(OneRankOnly(), "--replay-routing");
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_THAT(nothing.output, HasSubstr("there is no folder"));
}

}  // namespace
}  // namespace planwright::testing
