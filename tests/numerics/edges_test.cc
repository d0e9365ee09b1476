// Steps at the edge: without a token that has a loss, and with rows beyond the limit of their bridge.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "planner/base/files/exit_status.h"
#include "planner/wire/records/safetensors.h"
#include "tests/numerics/layouts.h"
#include "tests/numerics/run.h"

namespace planwright::testing {
namespace {

constexpr double kFp64 = 1e-9;

template <typename T>
TensorBytes Recorded(const std::string& name, DType dtype, std::vector<int64_t> shape, const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return {name, dtype, std::move(shape), std::move(bytes)};
}

// Three steps of 8 samples, recorded: text of a few tokens in a circle. No token of the second step has a loss.
class StepWithoutLoss : public ::testing::Test {
 protected:
  static constexpr int64_t kSamples = 24, kSequence = 48;

  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "planwright_batch_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    std::vector<int64_t> tokens, labels;
    std::vector<double> mask;
    for (int64_t sample = 0; sample < kSamples; ++sample) {
      for (int64_t i = 0; i < kSequence; ++i) {
        const auto token = [&](int64_t at) { return (7 * sample + at % 5) % 200; };
        tokens.push_back(token(i));
        labels.push_back(token(i + 1));
        mask.push_back(sample / 8 == 1 ? 0 : 1);
      }
    }
    const std::vector<int64_t> shape = {kSamples, kSequence};
    const absl::Status status =
        WriteSafetensors(folder_ + "/batch.safetensors", {Recorded("token_ids", DType::kInt64, shape, tokens),
                                                          Recorded("labels", DType::kInt64, shape, labels),
                                                          Recorded("loss_mask", DType::kFp64, shape, mask)});
    ASSERT_TRUE(status.ok()) << status;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  TrainingRun Train(const std::vector<std::string>& layout, const std::vector<std::string>& more = {}) const {
    // Recorded text may contain image tokens, so the recipe must name theirs.
    const std::vector<std::string> batch = {
        "precision.params=fp64", "data={kind: recorded, image_token: 255, path: " + folder_ + "/batch.safetensors}"};
    return Launch({kTextRecipe, Join(batch, layout, more), 3, ""});
  }

  std::string folder_;
};

// Only the auxiliary loss has a gradient. The step is applied: the moments decay and the weights move by them.
TEST_F(StepWithoutLoss, HasNoLossAndIsApplied) {
  const TrainingRun run = Train(LanguageOn(0, 1, 1, 1));
  ASSERT_EQ(run.exit_code, 0) << run.output;
  ASSERT_EQ(run.steps.size(), 3u);
  EXPECT_TRUE(std::isnan(run.steps[1].loss));
  EXPECT_TRUE(std::isfinite(run.steps[1].grad_norm));
  EXPECT_GT(run.steps[1].grad_norm, 0);
  EXPECT_FALSE(run.steps[1].skipped);
  EXPECT_TRUE(std::isfinite(run.steps[2].loss));
}

TEST_F(StepWithoutLoss, WithoutAuxiliaryLossItsGradientIsZero) {
  const TrainingRun run = Train(LanguageOn(0, 1, 1, 1), {"models.hybrid_moe_tiny.moe.aux_loss=0"});
  ASSERT_EQ(run.exit_code, 0) << run.output;
  ASSERT_EQ(run.steps.size(), 3u);
  EXPECT_TRUE(std::isnan(run.steps[1].loss));
  EXPECT_EQ(run.steps[1].grad_norm, 0);
  EXPECT_FALSE(run.steps[1].skipped);
  EXPECT_TRUE(std::isfinite(run.steps[2].loss));
}

TEST_F(StepWithoutLoss, IsTheSameOnFourRanks) {
  const TrainingRun reference = Train(LanguageOn(0, 1, 1, 1)), run = Train(LanguageOn(0, 4, 2, 4));
  ASSERT_EQ(reference.exit_code, 0) << reference.output;
  ASSERT_EQ(run.exit_code, 0) << run.output;
  const Comparison comparison = Compare(run, reference, kFp64);
  EXPECT_FALSE(comparison.parted_at);
  for (const std::string& difference : comparison.differences) ADD_FAILURE() << difference;
}

constexpr char kBridge[] = "radio_encoder->language";

std::string Limited(const std::string& limit) {
  return "bridges=[{from: radio_encoder, to: language, max_mean_square: " + limit + "}]";
}

// The limit is between the mean squares of two steps: the run ends after the later one, on all layouts at the same.
TEST(BridgeLimit, EndsTheRunAtTheSameStepOnAnyLayout) {
  const TrainingRun free = Launch({kTinyRecipe, {"precision.params=fp64"}, 4, ""});
  ASSERT_EQ(free.exit_code, 0) << free.output;
  const auto at = [&](size_t step) { return free.steps[step].bridge_mean_square.at(kBridge); };
  size_t beyond = 1;  // the first step whose mean square is above that of the first
  while (beyond < 4 && at(beyond) <= at(0)) ++beyond;
  ASSERT_LT(beyond, 4u) << "the rows only shrink";
  const std::string limit = Limited(std::to_string((at(0) + at(beyond)) / 2));
  for (const auto& layout :
       {OneRankOnly(), Join(EncoderOn(2, 2), LanguageOn(2, 2, 1, 2)), Join(EncoderOn(2, 1), LanguageOn(0, 2, 2, 1))}) {
    const TrainingRun run = Launch({kTinyRecipe, Join({"precision.params=fp64", limit}, layout), 4, ""});
    EXPECT_EQ(run.exit_code, kExitNumerics) << run.output;
    const std::string says = "step " + std::to_string(beyond + 1) + ": the rows of bridge " + kBridge;
    EXPECT_NE(run.output.find(says), std::string::npos) << run.output;
    EXPECT_NE(run.output.find("(bridge radio_encoder to language)"), std::string::npos) << run.output;
  }
}

TEST(BridgeLimit, WithoutRowsNothingIsBeyond) {
  const TrainingRun run = Launch({kTinyRecipe, {Limited("1.0e-9"), "data.max_images=0"}, 2, ""});
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_TRUE(std::isnan(run.steps[0].bridge_mean_square.at(kBridge)));
}

}  // namespace
}  // namespace planwright::testing
