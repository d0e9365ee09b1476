#include "planner/compile/topology/check_modules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/compile/topology/place_modules.h"
#include "tests/compile/topology/placing_problems.h"
#include "tests/support/problems.h"
#include "tests/support/recipe_builder.h"

namespace planwright {
namespace {

using ::testing::ElementsAre;
using testing::ProblemsOf;

TEST(CheckModules, EncodersAloneHaveNoLoss) {
  EXPECT_THAT(ProblemsOf(BuildRecipe({BuildEncoder(0, 4)})), ElementsAre("EncoderAlone:200"));
  EXPECT_THAT(ProblemsOf(BuildRecipe({BuildEncoder(0, 4), BuildEncoder(4, 4, {}, 600, "audio")})),
              ElementsAre("EncoderAlone:200"));
}

TEST(CheckModules, OnlyExpertsAreCutOverExpertAxes) {
  EXPECT_THAT(ProblemsOf(BuildRecipe({BuildEncoder(0, 4, {.ep = 2}), BuildLanguage(4, 4)})),
              ElementsAre("NoExperts:206"));
  EXPECT_THAT(ProblemsOf(BuildRecipe({BuildEncoder(0, 4, {.expert_tp = 2}), BuildLanguage(4, 4)})),
              ElementsAre("NoExperts:207"));
  ModuleRecipe dense = BuildLanguage(0, 4, {.ep = 2});
  dense.model.pattern.value = "M*M*";
  EXPECT_THAT(ProblemsOf(BuildRecipe({dense})), ElementsAre("NoExperts:106"));
  EXPECT_THAT(ProblemsOf(BuildRecipe({BuildLanguage(0, 4, {.ep = 2})})), ElementsAre());
}

TEST(CheckModules, SeveralEncodersApartOrAllTogether) {
  const auto recipe = [](int first, int second, int third) {
    return BuildRecipe({BuildEncoder(first, 4), BuildEncoder(second, 4, {}, 600, "audio"), BuildLanguage(third, 4)});
  };
  EXPECT_THAT(ProblemsOf(recipe(0, 4, 8)), ElementsAre());
  EXPECT_THAT(ProblemsOf(recipe(8, 0, 4)), ElementsAre());
  EXPECT_THAT(ProblemsOf(recipe(0, 0, 0)), ElementsAre());
  // two together, the language model apart
  EXPECT_THAT(ProblemsOf(recipe(0, 0, 4)), ElementsAre("PlacementsOverlap:201"));
  EXPECT_THAT(ProblemsOf(recipe(0, 4, 4)), ElementsAre("PlacementsOverlap:601"));
  EXPECT_THAT(ProblemsOf(recipe(0, 4, 0)), ElementsAre("PlacementsOverlap:201"));
  EXPECT_THAT(ProblemsOf(recipe(0, 2, 6)), ElementsAre("PlacementsOverlap:601"));  // in part
}

TEST(CheckModules, ColocatedModulesHaveNeitherStagesNorContextParallelism) {
  EXPECT_THAT(ProblemsOf(BuildRecipe({BuildEncoder(0, 4), BuildLanguage(0, 4, {.pp = 2})})),
              ElementsAre("ColocatedLayout:105"));
  EXPECT_THAT(ProblemsOf(BuildRecipe({BuildEncoder(0, 4, {.cp = 2, .pp = 2}), BuildLanguage(0, 4)})),
              ElementsAre("ColocatedLayout:204", "ColocatedLayout:205"));
  EXPECT_THAT(ProblemsOf(BuildRecipe({BuildEncoder(0, 4, {.tp = 4}), BuildLanguage(0, 4, {.tp = 2})})), ElementsAre());
  // Apart, both may have them; alone, the language model may.
  EXPECT_THAT(
      ProblemsOf(BuildRecipe({BuildEncoder(0, 4, {.cp = 2, .pp = 2}), BuildLanguage(4, 4, {.cp = 2, .pp = 2})})),
      ElementsAre());
  EXPECT_THAT(ProblemsOf(BuildRecipe({BuildLanguage(0, 4, {.cp = 2, .pp = 2})})), ElementsAre());
}

}  // namespace
}  // namespace planwright
