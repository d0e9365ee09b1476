#include "planner/recipe/model_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  std::get<HybridLmModel>(language.model.model).moe.normalized = true;
  for (const ModuleRecipe& module : {language, BuildEncoder(0, 8)}) {
    const LocatedNumbers numbers = NumbersOf(module.model);
    for (const StatedConstant& constant : StatementOfModel(module.model).constants) {
      if (IsOfAnotherModel(constant)) continue;
      const auto number = numbers.find(constant.name);
      ASSERT_NE(number, numbers.end()) << constant.name;
      EXPECT_EQ(std::holds_alternative<double>(*number->second), constant.real) << constant.name;
    }
  }
}

TEST(ModelFacts, NumbersHaveThePlacesOfTheirKeys) {
  const LocatedNumbers language = NumbersOf(BuildLanguage(0, 8).model);
  EXPECT_EQ(*SizeOf(language, "moe.experts"), 128);
  EXPECT_EQ(SizeOf(language, "moe.experts").where.line, 306);
  EXPECT_EQ(*RealOf(language, "moe.scale"), 2.5);
  EXPECT_FALSE(RealOf(language, "moe.scale").where.known());
  EXPECT_DEATH(SizeOf(language, "moe.scale"), "moe.scale");
  EXPECT_DEATH(SizeOf(language, "moe.expert"), "moe.expert");
}

TEST(ModelFacts, ChoicesAreFlags) {
  ModuleRecipe module = BuildEncoder(0, 8);
  EXPECT_EQ(*SizeOf(NumbersOf(module.model), "crop"), 0);
  std::get<RadioVitModel>(module.model.model).positions = {"crop", Line(410)};
  EXPECT_EQ(*SizeOf(NumbersOf(module.model), "crop"), 1);
  EXPECT_EQ(SizeOf(NumbersOf(module.model), "crop").where.line, 410);
}

// Without the key it is not said, and the module lacks the constant.
TEST(ModelFacts, AChoiceThatIsNotMadeIsNotThere) {
  ModuleRecipe language = BuildLanguage(0, 8);
  EXPECT_FALSE(NumbersOf(language.model).contains("moe.normalized"));
  std::get<HybridLmModel>(language.model.model).moe.normalized = {false, Line(310)};
  EXPECT_EQ(*SizeOf(NumbersOf(language.model), "moe.normalized"), 0);
  EXPECT_EQ(SizeOf(NumbersOf(language.model), "moe.normalized").where.line, 310);
}

TEST(ModelFacts, PatternsHaveALetterForEachLayer) {
  ModuleRecipe language = BuildLanguage(0, 8), encoder = BuildEncoder(0, 8);
  std::get<HybridLmModel>(language.model.model).pattern = {"ME|*E", Line(300)};
  std::get<RadioVitModel>(encoder.model.model).layers = {3, Line(400)};
  EXPECT_EQ(*PatternOf(language.model), "ME|*E");
  EXPECT_EQ(PatternOf(language.model).where.line, 300);
  EXPECT_EQ(*PatternOf(encoder.model), "VVV");
  EXPECT_EQ(PatternOf(encoder.model).where.line, 400);
}

TEST(ModelFacts, LayersWithoutTheirSectionAreNotGiven) {
  ModuleRecipe language = BuildLanguage(0, 8);
  std::get<HybridLmModel>(language.model.model).sections = {"mamba", "moe"};
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
