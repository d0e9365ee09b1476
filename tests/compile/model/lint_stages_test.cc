#include "planner/compile/model/lint_stages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/compile/model/expand_model.h"
#include "tests/compile/stages_of.h"
#include "tests/support/problems.h"
#include "tests/support/recipe_builder.h"

namespace planwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Diagnostics LintsOf(const ModuleRecipe& recipe, const Grid& grid) {
  Diagnostics diagnostics;
  const Module module =
      ExpandModule(recipe, grid, testing::StagesOf(recipe), {2688, 0.0173, 20}, 8192,
                   {.kind = DataKind::kMock,
                    .image_grids = {{128, 128}},
                    .max_images = 3,
                    .encoders = {{.module = *recipe.name, .patch = 16, .pixel_shuffle = 2, .max_image = 2048}}});
  LintStages(recipe, module, diagnostics);
  return diagnostics;
}

// 20 layers. The output head has about the work of seven layers.
ModuleRecipe Language(std::vector<int64_t> layers) {
  ModuleRecipe module = BuildLanguage(0, 2, {.pp = static_cast<int>(layers.size())});
  module.stage_layers = Located<std::vector<int64_t>>(std::move(layers), Line(150));
  return module;
}

TEST(LintStages, TheOutputHeadIsWorkToo) {
  const Diagnostics even = LintsOf(Language({10, 10}), {.pp = 2});
  EXPECT_THAT(KindsAndLines(even), ElementsAre("UnevenStages:150"));
  EXPECT_THAT(even.sorted()[0].message,
              HasSubstr("stage 1 of module language (10 layers and the output head) does 1."));
  EXPECT_THAT(KindsAndLines(LintsOf(Language({13, 7}), {.pp = 2})), IsEmpty());
}

TEST(LintStages, TheHeaviestIsNamed) {
  const Diagnostics found = LintsOf(Language({3, 14, 3}), {.pp = 3});
  ASSERT_THAT(KindsAndLines(found), ElementsAre("UnevenStages:150"));
  EXPECT_THAT(found.sorted()[0].message, HasSubstr("stage 1 of module language (14 layers) does "));
}

TEST(LintStages, OneStageHasNothingToWaitFor) {
  EXPECT_THAT(KindsAndLines(LintsOf(BuildLanguage(0, 2), {.dp = 2})), IsEmpty());
}

TEST(LintStages, EncodersToo) {
  ModuleRecipe module = BuildEncoder(0, 2, {.pp = 2});
  EXPECT_THAT(KindsAndLines(LintsOf(module, {.pp = 2})), IsEmpty());
  module.first_stage_layers = Located<int64_t>(28, Line(250));
  EXPECT_THAT(KindsAndLines(LintsOf(module, {.pp = 2})), ElementsAre("UnevenStages:250"));
}

}  // namespace
}  // namespace planwright
