#include "planner/compile/batches/plan_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/problems.h"
#include "tests/support/recipe_builder.h"

namespace planwright {
namespace {

using ::testing::ElementsAre;

// Mock data on line 70, its grids on lines 81 and later.
Recipe Mock(std::vector<ModuleRecipe> modules, const std::vector<std::vector<int64_t>>& grids) {
  Recipe recipe = BuildRecipe(std::move(modules));
  recipe.data.where = Line(70);
  recipe.data.image_token = {511, Line(71)};
  recipe.data.max_images = {3, Line(72)};
  for (size_t i = 0; i < grids.size(); ++i)
    recipe.data.image_grids.emplace_back(grids[i], Line(81 + static_cast<int>(i)));
  return recipe;
}

std::vector<std::string> ProblemsOf(const Recipe& recipe) {
  Diagnostics diagnostics;
  const bool fine = PlanData(recipe, diagnostics).has_value();
  EXPECT_EQ(fine, !diagnostics.has_errors());
  return KindsAndLines(diagnostics);
}

ModuleRecipe Encoder(int64_t max_image, int64_t pixel_shuffle, const std::string& name) {
  ModuleRecipe module = BuildEncoder(0, 1, {}, 600, name);
  Give(module.model, {{"max_image", max_image}, {"pixel_shuffle", pixel_shuffle}});
  return module;
}

// Without an auxiliary loss, so that there is no lint PW0605.
ModuleRecipe Language(int first_rank, int ranks) {
  ModuleRecipe module = BuildLanguage(first_rank, ranks);
  Give(module.model, {{"moe.aux_loss", 0.0}});
  return module;
}

TEST(PlanData, GridsFitEveryEncoder) {
  const ModuleRecipe wide = Encoder(2048, 2, "wide"), narrow = Encoder(512, 2, "narrow"),
                     coarse = Encoder(2048, 4, "coarse");
  const ModuleRecipe language = Language(1, 1);
  EXPECT_THAT(ProblemsOf(Mock({wide, language}, {{64, 64}, {6, 10}})), ElementsAre());
  EXPECT_THAT(ProblemsOf(Mock({wide, narrow, language}, {{6, 10}, {64, 32}})), ElementsAre("ImageGrid:82"));
  EXPECT_THAT(ProblemsOf(Mock({wide, coarse, language}, {{6, 12}, {8, 12}})), ElementsAre("ImageGrid:81"));
  // Equal encoders: reported once.
  EXPECT_THAT(ProblemsOf(Mock({wide, wide, language}, {{7, 10}})), ElementsAre("ImageGrid:81"));
}

TEST(PlanData, OnlyWhatLearnsHasAnAuxiliaryLoss) {
  ModuleRecipe language = BuildLanguage(1, 1);
  Give(language.model, {{"moe.aux_loss", 0.1}});
  const ModuleRecipe encoder = Encoder(2048, 2, "a");
  EXPECT_THAT(ProblemsOf(Mock({encoder, language}, {{64, 64}})), ElementsAre("MaskedTokensRaiseAuxLoss:70"));
  language.train_backbone = std::string("frozen");
  EXPECT_THAT(ProblemsOf(Mock({encoder, language}, {{64, 64}})), ElementsAre());
}

TEST(PlanData, MinImagesIsAtMostMaxImages) {
  Recipe recipe = Mock({Encoder(2048, 2, "a"), Language(1, 1)}, {{64, 64}});
  recipe.data.max_images = {2, Line(72)};
  for (int64_t images : {0, 1, 2}) {
    recipe.data.min_images = {images, Line(75)};
    EXPECT_THAT(ProblemsOf(recipe), ElementsAre());
  }
  recipe.data.min_images.value = 3;
  EXPECT_THAT(ProblemsOf(recipe), ElementsAre("MoreImagesThanMost:75"));
}

// The plan of a model without an encoder has no images, whatever the keys say.
TEST(PlanData, WithoutAnEncoderThereAreNoImages) {
  Recipe recipe = Mock({Language(0, 1)}, {});
  recipe.data.min_images = {2, Line(75)};
  Diagnostics diagnostics;
  const std::optional<DataPlan> plan = PlanData(recipe, diagnostics);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->min_images, 0);
  EXPECT_EQ(plan->max_images, 0);
}

// Without images the texts of a sample follow each other. As documents of their own, texts of one token have no loss.
TEST(PlanData, PackedTextsNeedTwoTokens) {
  Recipe recipe = Mock({Language(0, 1)}, {});
  recipe.data.text_tokens = {1, Line(73)};
  EXPECT_THAT(ProblemsOf(recipe), ElementsAre());
  recipe.batch.micro_samples = {1, Line(50)};
  recipe.data.packed_documents = {true, Line(74)};
  EXPECT_THAT(ProblemsOf(recipe), ElementsAre("NoLossTokens:73"));
  recipe.data.text_tokens.value = 2;
  EXPECT_THAT(ProblemsOf(recipe), ElementsAre());
}

// Also without an encoder, because the plan contains the grids.
TEST(PlanData, AGridIsTwoSizes) {
  for (const std::vector<int64_t>& grid : {std::vector<int64_t>{}, {4}, {4, 6, 6}, {4, 0}, {-4, 4}}) {
    EXPECT_THAT(ProblemsOf(Mock({Language(0, 1)}, {{4, 4}, grid})), ElementsAre("ImageGrid:82"));
  }
}

// An image of 96 x 96 patches has 2304 tokens for each encoder: three images fit into 8192 tokens with one encoder, but
// not with two.
TEST(PlanData, ASampleHoldsTheRowsOfEveryEncoder) {
  const ModuleRecipe a = Encoder(2048, 2, "a"), b = Encoder(2048, 2, "b"), language = Language(1, 1);
  EXPECT_THAT(ProblemsOf(Mock({a, language}, {{96, 96}})), ElementsAre());
  EXPECT_THAT(ProblemsOf(Mock({a, b, language}, {{96, 96}})), ElementsAre("SampleTooLong:72"));
  EXPECT_THAT(ProblemsOf(Mock({language}, {{96, 96}})), ElementsAre());
}

}  // namespace
}  // namespace planwright
