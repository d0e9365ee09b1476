#include "planner/recipe/model_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "planner/base/text/limits.h"
#include "tests/recipe/temp_recipes.h"
#include "tests/support/recipe_builder.h"

namespace planwright {
namespace {

// Those of a statement's constants that come from another model: an encoder has them of the model that it feeds.
bool IsOfAnotherModel(const StatedConstant& constant) { return constant.name.starts_with("output."); }

// Statements name their constants, recipes their keys. Each constant has a key of its type, whatever the pattern.
TEST(ModelFacts, RecipesGiveTheConstantsOfStatements) {
  ModuleRecipe language = BuildLanguage(0, 8);
  Give(language.model, {{"moe.normalized", 1}});
  for (const ModuleRecipe& module : {language, BuildEncoder(0, 8)}) {
    const LocatedNumbers& numbers = module.model.numbers;
    for (const StatedConstant& constant : StatementOfModel(module.model).constants) {
      if (IsOfAnotherModel(constant)) continue;
      const auto number = numbers.find(constant.name);
      ASSERT_NE(number, numbers.end()) << constant.name;
      EXPECT_EQ(std::holds_alternative<double>(*number->second), constant.real) << constant.name;
    }
  }
}

TEST(ModelFacts, NumbersHaveThePlacesOfTheirKeys) {
  const LocatedNumbers& language = BuildLanguage(0, 8).model.numbers;
  EXPECT_EQ(*SizeOf(language, "moe.experts"), 128);
  EXPECT_EQ(SizeOf(language, "moe.experts").where.line, 306);
  EXPECT_EQ(*RealOf(language, "moe.scale"), 2.5);
  EXPECT_FALSE(RealOf(language, "moe.scale").where.known());
  EXPECT_DEATH(SizeOf(language, "moe.scale"), "moe.scale");
  EXPECT_DEATH(SizeOf(language, "moe.expert"), "moe.expert");
}

TEST(ModelFacts, ChoicesAreFlags) {
  ModuleRecipe module = BuildEncoder(0, 8);
  EXPECT_EQ(*SizeOf(module.model.numbers, "crop"), 0);
  EXPECT_EQ(*SizeOf(module.model.numbers, "final_norm"), 1);
  const StatedKey& choice = *std::find_if(StatementOf("radio_vit")->keys.begin(), StatementOf("radio_vit")->keys.end(),
                                          [](const StatedKey& key) { return key.name == "final_norm"; });
  EXPECT_EQ(NumberOfWord(choice, "layernorm"), 1);
  EXPECT_EQ(NumberOfWord(choice, "none"), 0);
  EXPECT_DEATH(NumberOfWord(choice, "rmsnorm"), "rmsnorm");
}

// Without the key it is not said, and the module lacks the constant.
TEST(ModelFacts, AChoiceThatIsNotMadeIsNotThere) {
  ModuleRecipe language = BuildLanguage(0, 8);
  EXPECT_FALSE(language.model.numbers.contains("moe.normalized"));
  EXPECT_FALSE(DefaultModel("hybrid_lm").numbers.contains("moe.imbalance"));
}

TEST(ModelFacts, ModelsThatARecipeSaysNothingOfHaveDefaults) {
  const ModelRecipe language = DefaultModel("hybrid_lm");
  EXPECT_EQ(*SizeOf(language.numbers, "mamba.conv"), 4);
  EXPECT_EQ(*RealOf(language.numbers, "norm_eps"), 1e-5);
  EXPECT_EQ(*SizeOf(language.numbers, "moe.experts"), 0) << "no default, so that sizes of a missing section are 0";
  EXPECT_EQ(*language.pattern, "");
  EXPECT_TRUE(language.sections.empty());
}

TEST(ModelFacts, LayersWithoutTheirSectionAreNotGiven) {
  ModuleRecipe language = BuildLanguage(0, 8);
  language.model.sections = {"mamba", "moe"};
  EXPECT_TRUE(GivesLayer(language.model, 'M'));
  EXPECT_FALSE(GivesLayer(language.model, '*'));
  EXPECT_TRUE(GivesLayer(BuildEncoder(0, 8).model, 'V'));
  EXPECT_FALSE(GivesLayer(BuildEncoder(0, 8).model, 'M'));
}

TEST(ModelFacts, TheLanguageModelIsTheOneWithALoss) {
  const Recipe recipe = BuildRecipe({BuildEncoder(0, 8), BuildLanguage(8, 8)});
  EXPECT_EQ(LanguageOf(recipe), &recipe.modules[1]);
  EXPECT_EQ(LanguageOf(BuildRecipe({BuildEncoder(0, 8)})), nullptr);
  EXPECT_FALSE(CarriesLoss(ModelRecipe()));
}

// Names of models are compared with each other up to the number of modules that there may be, and as many are listed:
// work and messages do not grow with the square of a recipe.
TEST(ModelNames, AreComparedUpToTheLimitOfModules) {
  const auto first_help = [](size_t count) {
    std::string models = "models:\n", modules = "modules:\n";
    for (size_t i = 0; i < count; ++i) {
      const std::string number = std::to_string(i);
      models += "  model_of_a_name_" + number + ": {kind: hybrid_lm}\n";
      modules += "  module_" + number + ": {model: model_of_name_" + number + ", placement: {ranks: 1}}\n";
    }
    const TempRecipes files;
    Diagnostics problems;
    ReadRecipe(files.Write("r.yaml", "name: many\n" + models + modules), {}, problems);
    for (const Diagnostic& problem : problems.as_found()) {
      if (problem.kind == DiagnosticKind::kUnknownReference) return problem.help;
    }
    return std::string();
  };
  EXPECT_EQ(first_help(kMostModules), "did you mean `model_of_a_name_0`?");
  const std::string more = first_help(kMostModules + 1);
  EXPECT_TRUE(more.starts_with("the models are model_of_a_name_0, model_of_a_name_1, ")) << more;
  EXPECT_TRUE(more.ends_with(", model_of_a_name_15, ...")) << more;
}

}  // namespace
}  // namespace planwright
