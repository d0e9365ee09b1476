// Recipes drawn at random: each axis of each module and each feature may meet every other. What the planner accepts of
// them keeps all rules of verify.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "planner/compile/compile.h"
#include "planner/recipe/recipe_reader.h"
#include "tests/numerics/layouts.h"
#include "tests/numerics/layouts/drawn_layouts.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

// RANDOM_RECIPES=N tries more than ./dev test does.
int WantedPlans() {
  const char* wanted = std::getenv("RANDOM_RECIPES");
  return wanted ? std::atoi(wanted) : 150;
}

// `layers`: those that draws must reach, with and without what they keep for their backward.
void ExpectPlansKeepTheRules(DrawnFamily family, const std::vector<std::string>& layers) {
  LayoutDraw draw(1, family);
  std::map<std::string, int> blocks;  // plans that have a block of this name
  for (int plans = 0, drawn = 0; plans < WantedPlans(); ++drawn) {
    ASSERT_LT(drawn, 100 * WantedPlans()) << "nearly all draws are invalid";
    const Layout layout = draw.Next();
    const std::vector<std::string> precision = {std::vector<std::string>{
        "precision.params=bf16", "precision.params=fp32", "precision.params=fp64"}[static_cast<size_t>(drawn % 3)]};
    Diagnostics problems;
    const std::optional<Recipe> recipe =
        ReadRecipe(InSource(layout.recipe), Join(layout.overrides, layout.training, precision), problems);
    const std::optional<Plan> plan = recipe ? CompileRecipe(*recipe, problems) : std::nullopt;
    for (const Diagnostic& problem : problems.sorted())
      EXPECT_NE(problem.kind, DiagnosticKind::kBrokenRule) << "draw " << drawn << ": " << problem.message;
    if (!plan) continue;
    ++plans;
    for (const Block& block : plan->blocks) ++blocks[block.name];
  }
  for (const std::string& layer : layers) {
    for (const char* pass : {".forward", ".backward", ".recompute"})
      EXPECT_GT(blocks[layer + pass], 5) << layer << pass;
  }
}

TEST(RandomRecipes, PlansKeepTheRules) {
  ExpectPlansKeepTheRules(DrawnFamily::kHybrid,
                          {"language.mamba", "language.attention", "language.moe", "radio_encoder.layer"});
}

TEST(RandomRecipes, PlansOfDecodersKeepTheRules) {
  ExpectPlansKeepTheRules(DrawnFamily::kDecoder,
                          {"language.attention", "language.mlp", "language.moe", "radio_encoder.layer"});
}

}  // namespace
}  // namespace planwright::testing
