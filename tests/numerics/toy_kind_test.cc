// What the notation of statements can say and no kind of this program says (toy_kind.h): numbers do not depend on the
// layout, checkpoints are loaded on other layouts, and weights go out and come in again. Real processes over Gloo.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "planner/run/outcome/tensor_file.h"
#include "tests/numerics/layouts.h"
#include "tests/numerics/run.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The first step has the rate 0; the third is the first that follows an update of all weights.
constexpr int kSteps = 4;
constexpr double kTolerance = 1e-9;

std::vector<std::string> Text(int ranks, const std::vector<AxisSize>& axes) {
  return Join(LanguageOn(0, ranks, 1, 1), Parallel("language", axes));
}

std::vector<Layout> ToyKindLayouts() {
  const auto text = [](const char* name, int ranks, const std::vector<AxisSize>& axes,
                       const std::vector<std::string>& training = {}) {
    return Layout{name, Text(ranks, axes), training, kTextRecipe, {}};
  };
  return {
      text("expert_tp2_ep2", 4, {{"tp", 2}, {"ep", 2}, {"expert_tp", 2}}),
      // tp does not divide the vocabulary: both users of the embedding have its rows of padding.
      text("tp2_cp2_dp2", 8, {{"tp", 2}, {"cp", 2}},
           {"models.hybrid_moe_tiny.vocabulary=257", "models.hybrid_moe_tiny.mamba.groups=4"}),
      Layout{"overlapped_tp2_dp2",
             Join(Text(4, {{"tp", 2}, {"ep", 2}}),
                  {"gradients.overlap_reduce=true", "gradients.overlap_gather=true", "gradients.buckets=4"}),
             {},
             kTextRecipe,
             {}},
      {"images_tp2_cp2",
       Join(EncoderOn(2, 1), LanguageOn(2, 4, 1, 1), Parallel("language", {{"tp", 2}, {"cp", 2}})),
       {"models.hybrid_moe_tiny.mamba.groups=4"}},
      {"frozen_language_tp2",
       Join(EncoderOn(1, 1), LanguageOn(1, 2, 2, 1)),
       {"modules.language.train.backbone=frozen"}},
      Layout{"two_encoders",
             Join({"modules.radio_encoder.placement.first_rank=0", "modules.radio_encoder.placement.ranks=1",
                   "modules.fine_encoder.placement.first_rank=1", "modules.fine_encoder.placement.ranks=1"},
                  LanguageOn(2, 2, 2, 1)),
             {},
             "recipes/nemotron_moe_two_encoders_tiny.yaml",
             {}},
  };
}

class ToyKind : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "planwright_toy_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  static TrainingRun Run(const std::string& recipe, const std::vector<std::string>& overrides, int steps,
                         const std::string& run_dir = "", const std::string& probe = "") {
    TrainingRun run = Launch({.recipe = recipe,
                              .overrides = Join({"precision.params=fp64"}, overrides),
                              .steps = steps,
                              .binaries = InBuild("bin/toy"),
                              .run_dir = run_dir,
                              .probe = probe});
    EXPECT_EQ(run.exit_code, 0) << run.output;
    return run;
  }

  std::string folder_;
};

class OnLayouts : public ToyKind, public ::testing::WithParamInterface<Layout> {};

TEST_P(OnLayouts, TrainsTheCurveOfOneRank) {
  const Layout& layout = GetParam();
  const TrainingRun reference = Run(layout.recipe, Join(layout.one_rank, layout.training), kSteps);
  const TrainingRun run = Run(layout.recipe, Join(layout.training, layout.overrides), kSteps);
  EXPECT_TRUE(reference.parameters.contains("language_model.backbone.layers.1.mixer.experts.0.wide_proj.weight"));
  const Comparison comparison = Compare(run, reference, kTolerance);
  EXPECT_THAT(comparison.differences, IsEmpty());
  EXPECT_FALSE(comparison.parted_at);
  // Draws know nothing of layouts.
  ASSERT_EQ(run.parameters.size(), reference.parameters.size());
  for (const auto& [name, tensor] : reference.parameters)
    EXPECT_EQ(run.parameters.at(name).values, tensor.values) << name;
}
INSTANTIATE_TEST_SUITE_P(All, OnLayouts, ::testing::ValuesIn(ToyKindLayouts()),
                         [](const auto& info) { return info.param.name; });

// Both users of the embedding add to its one gradient: it is the slope of the loss. Rows that no token has get a
// gradient of the head alone.
TEST_F(ToyKind, TheGradientOfTheSharedWeightIsTheSlopeOfTheLoss) {
  constexpr double kStep = 1e-6;
  const std::string embeddings = "language_model.backbone.embeddings.weight", file = folder_ + "/moved.safetensors";
  const std::vector<std::string> one = Join(Text(1, {}), {"models.hybrid_moe_tiny.moe.aux_loss=0.0"});
  const std::string probe = folder_ + "/probe";
  const TrainingRun run = Run(kTextRecipe, one, 1, "", probe);
  const std::vector<double>& gradient = run.gradients_first.at(embeddings).values;
  double wanted = 0, losses[2] = {};
  for (int side : {0, 1}) {
    absl::StatusOr<TensorFile> weights = ReadTensorFile(probe + "/parameters.safetensors");
    ASSERT_TRUE(weights.ok()) << weights.status();
    std::string& bytes = weights->tensors.at(embeddings).bytes;
    ASSERT_EQ(bytes.size(), gradient.size() * sizeof(double));
    wanted = 0;
    for (size_t i = 0; i < gradient.size(); ++i) {
      const double direction = std::sin(static_cast<double>(i));
      double value = 0;
      std::memcpy(&value, bytes.data() + i * sizeof(double), sizeof value);
      value += (side == 0 ? kStep : -kStep) * direction;
      std::memcpy(bytes.data() + i * sizeof(double), &value, sizeof value);
      wanted += gradient[i] * direction;
    }
    ASSERT_TRUE(WriteTensorFile(file, *std::move(weights)).ok());
    losses[side] = Run(kTextRecipe, Join(one, {"initialize.from=" + file}), 1).steps.at(0).loss;
  }
  ASSERT_NE(wanted, 0);
  EXPECT_NEAR((losses[0] - losses[1]) / (2 * kStep) / wanted, 1, 1e-5);
}

// Trained on one layout, gone on with on another, as if on one all the time.
TEST_F(ToyKind, GoesOnOnAnotherLayout) {
  const std::string run_dir = folder_ + "/run", keep = "checkpoint.every_steps=2";
  const std::vector<std::string> one = Text(1, {}), many = Text(4, {{"tp", 2}, {"ep", 2}, {"expert_tp", 2}});
  const TrainingRun whole = Run(kTextRecipe, one, kSteps);
  Run(kTextRecipe, Join(many, {keep}), 2, run_dir);
  const TrainingRun run = Run(kTextRecipe, Join(one, {keep}), kSteps, run_dir);
  EXPECT_THAT(run.output, HasSubstr("resuming after step 2"));
  ASSERT_EQ(run.steps.size(), whole.steps.size());
  for (size_t i = 0; i < run.steps.size(); ++i)
    EXPECT_NEAR(run.steps[i].loss / whole.steps[i].loss, 1, kTolerance) << i;
}

// What a run leaves, as a file of published names, is what another layout begins with.
TEST_F(ToyKind, WeightsGoOutAndComeIn) {
  const std::string probe = folder_ + "/probe";
  const TrainingRun first = Run(kTextRecipe, Text(4, {{"tp", 2}, {"ep", 2}, {"expert_tp", 2}}), 3, "", probe);
  const TrainingRun second = Run(
      kTextRecipe, Join(Text(2, {{"expert_tp", 2}}), {"initialize.from=" + probe + "/parameters_last.safetensors"}), 1);
  ASSERT_EQ(second.parameters.size(), first.parameters_last.size());
  for (const auto& [name, tensor] : first.parameters_last)
    EXPECT_EQ(second.parameters.at(name).values, tensor.values) << name;
}

}  // namespace
}  // namespace planwright::testing
