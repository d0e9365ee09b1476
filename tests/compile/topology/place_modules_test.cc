#include "planner/compile/topology/place_modules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "planner/compile/topology/derive_grids.h"
#include "tests/compile/topology/placing_problems.h"
#include "tests/support/problems.h"
#include "tests/support/recipe_builder.h"

namespace planwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ProblemsOf;

// Encoder on ranks 0-3 (tp2), language on 4-7 (tp2, ep4): the 8 ranks of docs/layouts/grids.md#topologies.
Recipe Mock() { return BuildRecipe({BuildEncoder(0, 4, {.tp = 2}), BuildLanguage(4, 4, {.tp = 2, .ep = 4})}); }

TEST(PlaceModules, DerivesDataParallelSizes) {
  Diagnostics diagnostics;
  const auto grids = GridsOf(PlaceModules(Mock(), diagnostics));
  ASSERT_TRUE(grids);
  EXPECT_EQ(grids->at(0), (Grid{.first_rank = 0, .tp = 2, .dp = 2, .expert_dp = 4}));
  EXPECT_EQ(grids->at(1), (Grid{.first_rank = 4, .tp = 2, .dp = 2, .ep = 4, .expert_dp = 1}));
  EXPECT_EQ(WorldSizeOf(*grids), 8);
}

TEST(PlaceModules, OrderOfModulesIsFree) {
  Recipe recipe = Mock();
  std::swap(recipe.modules[0], recipe.modules[1]);
  Diagnostics diagnostics;
  const auto grids = GridsOf(PlaceModules(recipe, diagnostics));
  ASSERT_TRUE(grids);
  EXPECT_EQ(grids->at(0).first_rank, 4);
}

TEST(PlaceModules, ColocatedAndLanguageAlone) {
  EXPECT_THAT(ProblemsOf(BuildRecipe({BuildEncoder(0, 8), BuildLanguage(0, 8, {.tp = 2})})), ElementsAre());
  EXPECT_THAT(ProblemsOf(BuildRecipe({BuildLanguage(0, 8, {.tp = 2})})), ElementsAre());
}

TEST(PlaceModules, SizesThatDoNotDivide) {
  Recipe recipe = Mock();
  recipe.modules[0].tp.value = 3;
  Diagnostics diagnostics;
  EXPECT_FALSE(PlaceModules(recipe, diagnostics).complete);
  bool found = false;
  for (const Diagnostic& d : diagnostics.sorted()) {
    if (d.kind != DiagnosticKind::kGridDoesNotFit) continue;
    found = true;
    EXPECT_EQ(d.where.line, 202);
    EXPECT_THAT(d.message, HasSubstr("4 ranks"));
    EXPECT_THAT(d.message, HasSubstr("3 x 1 x 1"));
    EXPECT_THAT(d.help, HasSubstr("3 or 6 ranks"));
    ASSERT_FALSE(d.notes.empty());
    EXPECT_EQ(d.notes[0].where.line, 203);
  }
  EXPECT_TRUE(found);
  recipe = Mock();
  recipe.modules[1].ep.value = 8;
  EXPECT_THAT(ProblemsOf(recipe), ElementsAre("ExpertGridDoesNotFit:106"));
}

TEST(PlaceModules, NoMoreRanksAreProposedThanAPlanHas) {
  Recipe recipe = Mock();
  recipe.modules[0].tp.value = 1 << 10;
  recipe.modules[0].cp.value = 1 << 11;
  Diagnostics diagnostics;
  EXPECT_FALSE(PlaceModules(recipe, diagnostics).complete);
  const auto& found = diagnostics.as_found();
  const auto grid = std::find_if(found.begin(), found.end(),
                                 [](const Diagnostic& d) { return d.kind == DiagnosticKind::kGridDoesNotFit; });
  ASSERT_NE(grid, found.end());
  EXPECT_EQ(grid->help, "use smaller parallel sizes: a plan has at most 1048576 ranks");
}

TEST(PlaceModules, WrittenDpIsChecked) {
  Recipe recipe = Mock();
  recipe.modules[1].dp = Located<int64_t>(2, Line(109));
  EXPECT_THAT(ProblemsOf(recipe), ElementsAre());
  recipe.modules[1].dp = Located<int64_t>(4, Line(109));
  EXPECT_THAT(ProblemsOf(recipe), ElementsAre("DataParallelMismatch:109"));
}

TEST(PlaceModules, OverlapsAndGaps) {
  EXPECT_THAT(ProblemsOf(BuildRecipe({BuildEncoder(0, 4), BuildLanguage(2, 6)})), ElementsAre("PlacementsOverlap:101"));
  // They begin together: the one with fewer ranks is told at these.
  EXPECT_THAT(ProblemsOf(BuildRecipe({BuildEncoder(0, 4), BuildLanguage(0, 8)})), ElementsAre("PlacementsOverlap:202"));
  EXPECT_THAT(ProblemsOf(BuildRecipe({BuildEncoder(1, 3), BuildLanguage(4, 4)})), ElementsAre("RanksNotCovered:201"));
  EXPECT_THAT(ProblemsOf(BuildRecipe({BuildEncoder(0, 3), BuildLanguage(4, 4)})), ElementsAre("RanksNotCovered:101"));
}

TEST(PlaceModules, AClusterTooLargeIsALintAndOneTooSmallAnError) {
  Recipe recipe = Mock();
  recipe.cluster.gpu = std::string("h100_sxm");
  recipe.cluster.nodes = {1, Line(5)};
  EXPECT_THAT(ProblemsOf(recipe), ElementsAre());
  recipe.cluster.nodes.value = 2;
  EXPECT_THAT(ProblemsOf(recipe), ElementsAre("IdleGpus:5"));
  recipe.cluster.nodes.value = 1;
  recipe.cluster.gpus_per_node.value = 6;
  EXPECT_THAT(ProblemsOf(recipe), ElementsAre("OutsideWorld:102"));
}

TEST(PlaceModules, ModulesAreNamedAndCounted) {
  EXPECT_THAT(ProblemsOf(BuildRecipe({BuildEncoder(0, 4, {}, 200, "language"), BuildLanguage(4, 4)})),
              ElementsAre("RepeatedModule:100"));
  EXPECT_THAT(ProblemsOf(BuildRecipe({BuildLanguage(0, 4), BuildLanguage(4, 4, {}, 500, "other")})),
              ElementsAre("LanguageModuleCount:500"));
  EXPECT_THAT(ProblemsOf(BuildRecipe({})), ElementsAre("LanguageModuleCount:1"));
}

TEST(PlaceModules, ModulesAreCutAlongEveryAxis) {
  EXPECT_THAT(ProblemsOf(BuildRecipe({BuildEncoder(0, 16, {.tp = 2, .cp = 2, .pp = 2}), BuildLanguage(16, 4)})),
              ElementsAre());
  EXPECT_THAT(ProblemsOf(BuildRecipe({BuildLanguage(0, 16, {.tp = 2, .cp = 2, .pp = 2, .ep = 4, .expert_tp = 2})})),
              ElementsAre());
}

TEST(PlaceModules, ReportsIndependentProblemsAtOnce) {
  Recipe recipe = Mock();
  recipe.modules[0].ranks.value = 5;  // does not divide, and overlaps the language module's rank 4
  recipe.modules[1].ep.value = 3;
  EXPECT_THAT(ProblemsOf(recipe), ElementsAre("PlacementsOverlap:101", "ExpertGridDoesNotFit:106",
                                              "LayoutDoesNotDivide:106", "GridDoesNotFit:202"));
}

}  // namespace
}  // namespace planwright
