// What the notation of statements can say and no kind of this program says (toy_kind.h): numbers do not depend on the
// layout, checkpoints are loaded on other layouts, and weights go out and come in again. Real processes over Gloo.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

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
  EXPECT_TRUE(reference.gradients_first.contains("language_model.backbone.layers.1.mixer.experts.0.wide_proj.weight"));
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
