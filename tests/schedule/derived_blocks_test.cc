// Derived blocks are the lowered ones, but for names of values within a block: those of the shipped recipes, of the
// layouts of plans.golden, and of recipes drawn at random.
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "planner/compile.h"
#include "planner/diagnostics/render.h"
#include "planner/recipe/recipe_reader.h"
#include "planner/schedule/derive/derive_module.h"
#include "tests/golden/block_layouts.h"
#include "tests/numerics/layouts.h"
#include "tests/numerics/layouts/drawn_layouts.h"
#include "tests/schedule/block_difference.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;
using std::string;

struct Counts {
  int equal = 0, different = 0, instructions = 0;
};

class DerivedBlocks : public ::testing::Test {
 protected:
  // Compares the blocks of a recipe. False: it has no plan.
  bool Compare(const string& name, const string& path, const std::vector<string>& overrides) {
    Diagnostics problems;
    const std::optional<Recipe> recipe = ReadRecipe(path, overrides, problems);
    const std::optional<Plan> plan = recipe ? CompileRecipe(*recipe, problems) : std::nullopt;
    if (!plan) return false;
    ++plans_;
    const ProgramInputs inputs = {.modules = plan->modules,
                                  .bridges = plan->bridges,
                                  .budget = plan->budget,
                                  .data = plan->data,
                                  .schedule = plan->schedule,
                                  .world_size = plan->world_size,
                                  .dtype = plan->dtype()};
    size_t blocks_of_stages = 0, before = compared_;
    for (const Block& block : plan->blocks) blocks_of_stages += block.name.starts_with(block.module + ".s");
    for (size_t i = 0; i < plan->modules.size(); ++i) {
      const ModuleBlocks blocks = DeriveModule(inputs, plan->modules[i], *recipe->modules[i].overlap_dispatch);
      CompareLayer(name, *plan, plan->modules[i].name + ".embed", blocks.embedding);
      CompareLayer(name, *plan, plan->modules[i].name + ".head", blocks.head);
      for (const auto& [kind, layer] : blocks.layers) {
        const string& forward = layer.forward.name;
        CompareLayer(name, *plan, forward.substr(0, forward.rfind('.')), layer);
      }
    }
    EXPECT_EQ(compared_ - before + blocks_of_stages, plan->blocks.size()) << name << " has other blocks too";
    return true;
  }

  void TearDown() override {
    for (const auto& [name, count] : counts_) {
      std::printf("%-36s %5d equal %5d different %7d instructions\n", name.c_str(), count.equal, count.different,
                  count.instructions);
    }
    std::printf("%d plans\n", plans_);
    EXPECT_GT(plans_, 0);
    for (const auto& [what, names] : differences_)
      ADD_FAILURE() << names.size() << " plans, the first is " << names.front() << ": " << what;
  }

 private:
  void CompareLayer(const string& plan_name, const Plan& plan, const string& name, const LayerBlocks& derived) {
    ValueNames names;
    const auto compare = [&](const char* what, const Block* block) {
      const Block* lowered = plan.FindBlock(name + what);
      if (!lowered && !block) return;
      string difference = !lowered ? "is not lowered"
                          : !block ? "is not derived"
                                   : BlockDifference(*lowered, *block, names);
      Counts& count = counts_[name + what];
      ++compared_;
      count.instructions += lowered ? static_cast<int>(lowered->body.size()) : 0;
      ++(difference.empty() ? count.equal : count.different);
      if (!difference.empty()) differences_[name + what + " " + difference].push_back(plan_name);
    };
    compare(".forward", &derived.forward);
    compare(".recompute", derived.recompute ? &*derived.recompute : nullptr);
    compare(".backward", derived.backward ? &*derived.backward : nullptr);
  }

  int plans_ = 0;
  size_t compared_ = 0;
  std::map<string, Counts> counts_;                    // by block
  std::map<string, std::vector<string>> differences_;  // the plans in which each was found
};

TEST_F(DerivedBlocks, AreThoseOfShippedRecipes) {
  for (const fs::directory_entry& entry : fs::directory_iterator(InSource("recipes"))) {
    if (entry.path().extension() != ".yaml") continue;
    EXPECT_TRUE(Compare(entry.path().stem().string(), entry.path().string(), {})) << entry.path();
  }
}

TEST_F(DerivedBlocks, AreThoseOfGoldenLayouts) {
  for (const std::vector<Layout>& layouts : {BlockLayouts(), AllLayouts(), ToyLayouts()}) {
    for (const Layout& layout : layouts)
      EXPECT_TRUE(Compare(layout.name, InSource(layout.recipe), Join(layout.overrides, layout.training)))
          << layout.name;
  }
}

TEST_F(DerivedBlocks, AreThoseOfRandomRecipes) {
  // Two of three draws are invalid. DERIVED_RECIPES says how many valid ones are compared.
  const char* wanted = std::getenv("DERIVED_RECIPES");
  LayoutDraw draw(1);
  for (int compared = 0, drawn = 0; compared < (wanted ? std::atoi(wanted) : 200);) {
    const Layout layout = draw.Next();
    const char* precision = std::vector{"bf16", "fp32", "fp64"}[static_cast<size_t>(drawn % 3)];
    const string name = "draw " + std::to_string(drawn++) + " in " + precision;
    const std::vector<string> overrides = {string("precision.params=") + precision};
    if (Compare(name, InSource(layout.recipe), Join(layout.overrides, layout.training, overrides))) ++compared;
  }
}

}  // namespace
}  // namespace planwright::testing
