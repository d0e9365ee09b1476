#include "planner/compile/topology/check_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "planner/compile/model/layer_pattern.h"
#include "tests/support/problems.h"
#include "tests/support/recipe_builder.h"

namespace planwright {
namespace {

using ::testing::ElementsAre;

// Of the first module.
bool IsFine(const Recipe& recipe, Diagnostics& diagnostics) {
  const ModuleRecipe& module = recipe.modules[0];
  const auto pattern = PatternOfLayers(module.model, diagnostics);
  if (!pattern) return false;
  const bool shape = CheckModelShape(module, *pattern, diagnostics).has_value();
  return CheckLayout(recipe, module, *pattern, diagnostics) && shape;
}

std::vector<std::string> LanguageProblems(const Parallel& parallel, const std::function<void(ModelRecipe&)>& change,
                                          int64_t sequence = 8192) {
  Recipe recipe = BuildRecipe({BuildLanguage(0, 8, parallel)});
  recipe.batch.sequence_length.value = sequence;
  change(recipe.modules[0].model);
  Diagnostics diagnostics;
  const bool fine = IsFine(recipe, diagnostics);
  EXPECT_EQ(fine, !diagnostics.has_errors());
  return KindsAndLines(diagnostics);
}

std::vector<std::string> EncoderProblems(const Parallel& parallel, const std::function<void(ModelRecipe&)>& change) {
  Recipe recipe = BuildRecipe({BuildEncoder(0, 8, parallel), BuildLanguage(8, 8)});
  change(recipe.modules[0].model);
  Diagnostics diagnostics;
  const bool fine = IsFine(recipe, diagnostics);
  EXPECT_EQ(fine, !diagnostics.has_errors());
  return KindsAndLines(diagnostics);
}

TEST(CheckLayout, PresetsFit) {
  EXPECT_THAT(LanguageProblems({.tp = 2, .ep = 8}, [](auto&) {}), ElementsAre());
  EXPECT_THAT(EncoderProblems({.tp = 2}, [](auto&) {}), ElementsAre());
}

TEST(CheckLayout, LanguageSizesOverTp) {
  EXPECT_THAT(LanguageProblems({.tp = 2},
                               [](auto& m) {
                                 Give(m, {{"attention.heads", 9}, {"attention.kv_groups", 9}});
                               }),
              ElementsAre("LayoutDoesNotDivide:103", "LayoutDoesNotDivide:103"));
  EXPECT_THAT(LanguageProblems({.tp = 2},
                               [](auto& m) {
                                 Give(m, {{"mamba.groups", 1}});
                               }),
              ElementsAre("LayoutDoesNotDivide:103"));
  EXPECT_THAT(LanguageProblems({.tp = 2},
                               [](auto& m) {
                                 Give(m, {{"moe.shared_ffn", 33}});
                               }),
              ElementsAre("LayoutDoesNotDivide:103"));
  EXPECT_THAT(LanguageProblems({.ep = 8},
                               [](auto& m) {
                                 Give(m, {{"moe.experts", 12}});
                               }),
              ElementsAre("LayoutDoesNotDivide:106"));
  EXPECT_THAT(LanguageProblems(
                  {.tp = 2}, [](auto&) {}, 33),
              ElementsAre("LayoutDoesNotDivide:103"));
  // Experts are whole on a rank when expert_tp is 1.
  EXPECT_THAT(LanguageProblems({.tp = 2}, [](auto& m) { Give(m, {{"moe.ffn", 33}}); }), ElementsAre());
}

// Ranks may share a key head, but then whole ones. The vocabulary need not divide.
TEST(CheckLayout, KeyHeadsAndVocabularyOverTp) {
  const auto problems = [](int tp, int64_t heads, int64_t groups) {
    Recipe recipe = BuildRecipe({BuildLanguage(0, 8, {.tp = tp})});
    Give(recipe.modules[0].model, {{"attention.heads", heads}, {"attention.kv_groups", groups}, {"vocabulary", 131}});
    Diagnostics diagnostics;
    CheckLayout(recipe, recipe.modules[0], *PatternOfLayers(recipe.modules[0].model, diagnostics), diagnostics);
    std::string text;
    for (const Diagnostic& problem : diagnostics.sorted()) text += problem.message + " (" + problem.help + ")\n";
    return text;
  };
  EXPECT_EQ(problems(2, 32, 1), "");
  EXPECT_EQ(problems(4, 32, 2), "");
  EXPECT_EQ(problems(8, 32, 2), "");
  EXPECT_EQ(problems(2, 30, 3),
            "attention.kv_groups of module language is 3, which is not a multiple of tp = 2, nor divides it "
            "(choose tp among the divisors and the multiples of 3)\n");
  EXPECT_EQ(problems(4, 36, 6),
            "attention.kv_groups of module language is 6, which is not a multiple of tp = 4, nor divides it "
            "(choose tp among the divisors and the multiples of 6)\n");
  // A multiple of the key heads cuts query heads all the same.
  EXPECT_EQ(problems(4, 6, 2),
            "attention.heads of module language is 6, which is not a multiple of tp = 4 "
            "(choose tp among the divisors of 6)\n");
}

// Over cp the sequence is cut in 2 x cp chunks, and Mamba's heads are cut too
// (docs/layouts/sequence.md#context-parallelism).
TEST(CheckLayout, LanguageSizesOverCp) {
  EXPECT_THAT(LanguageProblems({.tp = 2, .cp = 4}, [](auto&) {}), ElementsAre());
  EXPECT_THAT(LanguageProblems(
                  {.tp = 2, .cp = 2}, [](auto&) {}, 8),
              ElementsAre());
  EXPECT_THAT(LanguageProblems(
                  {.tp = 2, .cp = 2}, [](auto&) {}, 12),
              ElementsAre("LayoutDoesNotDivide:104"));
  // 8 groups of Mamba
  EXPECT_THAT(LanguageProblems({.tp = 4, .cp = 4}, [](auto&) {}), ElementsAre("LayoutDoesNotDivide:104"));
  EXPECT_THAT(LanguageProblems({.cp = 4},
                               [](auto& m) {
                                 Give(m, {{"mamba.heads", 6}, {"mamba.groups", 6}});
                               }),
              ElementsAre("LayoutDoesNotDivide:104", "LayoutDoesNotDivide:104"));
  // Attention's heads are whole over cp.
  EXPECT_THAT(LanguageProblems({.cp = 8}, [](auto& m) { Give(m, {{"attention.kv_groups", 2}}); }), ElementsAre());
}

TEST(CheckLayout, OnlyLayersOfThePatternCount) {
  EXPECT_THAT(LanguageProblems({.tp = 2},
                               [](auto& m) {
                                 m.pattern.value = "ME";
                                 Give(m, {{"attention.kv_groups", 1}});
                                 m.sections.erase("attention");
                               }),
              ElementsAre());
}

TEST(CheckLayout, TheWidthOfADenseMlpIsCutOverTp) {
  const auto with = [](int64_t ffn) {
    return [ffn](auto& m) {
      m.pattern.value = "M-E";
      m.sections.insert("mlp");
      Give(m, {{"mlp.ffn", ffn, Line(310)}});
    };
  };
  EXPECT_THAT(LanguageProblems({.tp = 2}, with(34)), ElementsAre());
  EXPECT_THAT(LanguageProblems({.tp = 2}, with(33)), ElementsAre("LayoutDoesNotDivide:103"));
  EXPECT_THAT(LanguageProblems({}, with(33)), ElementsAre());
}

TEST(CheckLayout, LanguageShapes) {
  EXPECT_THAT(LanguageProblems({},
                               [](auto& m) {
                                 Give(m, {{"attention.kv_groups", 5}});
                               }),
              ElementsAre("ModelShape:302"));
  EXPECT_THAT(LanguageProblems({}, [](auto& m) { Give(m, {{"mamba.groups", 5}}); }), ElementsAre("ModelShape:304"));
  EXPECT_THAT(LanguageProblems({}, [](auto& m) { Give(m, {{"moe.top_k", 129}}); }), ElementsAre("ModelShape:307"));
  EXPECT_THAT(LanguageProblems({}, [](auto& m) { m.sections.erase("moe"); }), ElementsAre("MissingModelSection:300"));
  EXPECT_THAT(LanguageProblems({}, [](auto& m) { m.pattern.value = ""; }), ElementsAre("ModelShape:300"));
  EXPECT_THAT(LanguageProblems({}, [](auto& m) { m.pattern.value = "MxE"; }), ElementsAre("UnknownLayer:300"));
  EXPECT_THAT(LanguageProblems({}, [](auto& m) { m.pattern.value = "MDG/M"; }), ElementsAre("NotBuiltYet:300"));
  EXPECT_THAT(LanguageProblems({}, [](auto& m) { m.pattern.value = "M-E"; }), ElementsAre("MissingModelSection:300"));
  EXPECT_THAT(LanguageProblems({}, [](auto& m) { m.pattern.value = "ME|M*"; }), ElementsAre("PatternSplit:300"));
}

TEST(CheckLayout, EncoderSizes) {
  EXPECT_THAT(EncoderProblems({.tp = 2},
                              [](auto& m) {
                                Give(m, {{"heads", 5}});
                              }),
              ElementsAre("LayoutDoesNotDivide:203"));
  EXPECT_THAT(EncoderProblems({.tp = 2},
                              [](auto& m) {
                                Give(m, {{"ffn", 5}});
                              }),
              ElementsAre("LayoutDoesNotDivide:203"));
  EXPECT_THAT(EncoderProblems({.tp = 2},
                              [](auto& m) {
                                Give(m, {{"projector.hidden", 5}});
                              }),
              ElementsAre("LayoutDoesNotDivide:203"));
  EXPECT_THAT(EncoderProblems({}, [](auto& m) { Give(m, {{"heads", 3}}); }), ElementsAre("ModelShape:401"));
  EXPECT_THAT(EncoderProblems({},
                              [](auto& m) {
                                Give(m, {{"max_image", 2046}});
                              }),
              ElementsAre("ModelShape:405", "ModelShape:405"));
  EXPECT_THAT(EncoderProblems({}, [](auto& m) { Give(m, {{"max_image", 48}}); }), ElementsAre("ModelShape:405"));
}

}  // namespace
}  // namespace planwright
