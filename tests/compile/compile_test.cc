// Whole compiles of the tiny model in its basic layouts. Each plan passes its proof, also after it was written and
// read.
#include "planner/compile/compile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/compile/advise.h"
#include "planner/plan/plan_json.h"
#include "planner/recipe/diagnostics/render.h"
#include "planner/recipe/recipe_reader.h"
#include "planner/verify/verify.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"
#include "tests/support/recipes.h"

namespace planwright {
namespace {

using testing::Compiled;
using testing::TinyLayout;
using testing::TinyRecipe;

struct NamedLayout {
  const char* name;
  TinyLayout layout;
  friend void PrintTo(const NamedLayout& layout, std::ostream* out) { *out << layout.name; }
};

class CompileLayouts : public ::testing::TestWithParam<NamedLayout> {};

TEST_P(CompileLayouts, ProvesAndSurvivesTheFile) {
  const Plan plan = Compiled(TinyRecipe(GetParam().layout));
  ASSERT_FALSE(plan.roles.empty());
  const std::string text = WritePlan(plan);
  const auto again = ReadPlan(text);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(WritePlan(*again), text);
  for (const Violation& violation : VerifyPlan(*again)) ADD_FAILURE() << violation.rule << ": " << violation.message;
}

// The predicted step goes with the plan: it is that of the lint and of the plan's deadlines, and names the plan's
// roles.
TEST(Compile, GivesTheStepThatItPredicts) {
  Diagnostics problems;
  StepTime time;
  const std::optional<Recipe> recipe = ReadRecipe(InSource("recipes/nemotron_moe_vlm_20l_mock_8r.yaml"), {}, problems);
  ASSERT_TRUE(recipe.has_value());
  std::optional<Plan> compiled = CompileRecipe(*recipe, problems, &time);
  ASSERT_TRUE(compiled.has_value());
  const Plan plan = *std::move(compiled);
  EXPECT_EQ(time.length, plan.launch.predicted_step);
  EXPECT_EQ(time.length, TimeStep(plan).length);
  ASSERT_FALSE(time.roles.empty());
  for (const RoleTime& role : time.roles) {
    EXPECT_GE(role.role, plan.roles.data());
    EXPECT_LT(role.role, plan.roles.data() + plan.roles.size());
  }
}

// Empty parts for multi-token prediction are none (docs/model/language_model.md).
TEST(Compile, EmptyPartsOfAPatternAddNothing) {
  const std::string recipe = InSource("recipes/qwen3_moe_tiny.yaml");
  const Plan without = testing::CompiledFile(recipe);
  ASSERT_EQ(without.modules.at(0).layers.size(), 4u);
  for (const std::string end : {"/", "//"}) {
    const Plan with = testing::CompiledFile(recipe, {"models.decoder_tiny.pattern=\"*E*-" + end + "\""});
    EXPECT_EQ(PlanDigest(with), PlanDigest(without)) << end;
  }
}

// Each change that is tried for a help is a whole check, in which no more stages are made than a plan has.
TEST(Compile, AMillionStagesAreRefusedAsTooMany) {
  for (const std::vector<std::string>& layers : std::vector<std::vector<std::string>>{
           {"models.decoder_tiny.pattern=/*-"}, {"modules.language.parallel.first_stage_layers=4"}}) {
    std::vector<std::string> overrides = {"modules.language.parallel.pp=1000000", "modules.language.parallel.tp=16",
                                          "modules.language.parallel.cp=4"};
    overrides.insert(overrides.end(), layers.begin(), layers.end());
    Diagnostics problems;
    const std::optional<Recipe> recipe = ReadRecipe(InSource("recipes/qwen3_moe_tiny.yaml"), overrides, problems);
    ASSERT_TRUE(recipe);
    EXPECT_FALSE(CompileWithAdvice(*recipe, problems));
    SourceTexts texts;
    EXPECT_THAT(RenderText(problems.sorted(), texts, false), ::testing::HasSubstr("a plan has at most 1048576 ranks"));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Tiny, CompileLayouts,
    ::testing::Values(NamedLayout{"one_rank", {}}, NamedLayout{"one_and_one", {1, 1, 1, 1, 1, false}},
                      NamedLayout{"tp2_tp2", {2, 2, 2, 2, 1, false}}, NamedLayout{"dp2_dp2", {2, 1, 2, 1, 1, false}},
                      NamedLayout{"ep2", {1, 1, 2, 1, 2, false}}, NamedLayout{"ep4", {1, 1, 4, 2, 4, false}},
                      NamedLayout{"fan_in", {4, 1, 2, 2, 1, false, 4}}, NamedLayout{"fan_out", {1, 1, 4, 1, 1, false}},
                      NamedLayout{"uneven", {3, 1, 4, 1, 1, false}}, NamedLayout{"colocated_4", {4, 2, 4, 1, 2, true}},
                      NamedLayout{"mock_8r_layout", {4, 2, 4, 2, 4, false}}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace planwright
