// Lint PW0615: which samples of an evaluation set are those of the training.
#include "planner/compile/batches/lint_trained.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "planner/compile/batches/source_files.h"
#include "tests/recipe/temp_recipes.h"
#include "tests/support/folders.h"
#include "tests/support/problems.h"

namespace planwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LintsTrained : public testing::Test {
 protected:
  Diagnostics Of(const std::string& text) {
    Diagnostics problems;
    const std::optional<Recipe> recipe = ReadRecipe(files_.Write("recipe.yaml", text), {}, problems);
    EXPECT_TRUE(recipe.has_value());
    LookedFor looked_for(CountPatterns(*recipe));
    LintTrained(*recipe, looked_for, problems);
    return problems;
  }

  // Of shards of a training and of a set; without quotes. Empty: nothing is told.
  std::string OfShards(const std::string& training, const std::string& set) {
    const Diagnostics problems =
        Of("extends: [" + InSource("recipes/icons_8r_toy.yaml") +
           "]\ndata: {kind: sources, sources: [{kind: webdataset, shards: " + training +
           "}]}\nevaluation: {every_samples: 64, sets: [{name: held_out, samples: 8, sources: [{kind: webdataset, "
           "shards: " +
           set + "}]}]}\n");
    std::string told;
    for (const Diagnostic& problem : problems.as_found()) {
      EXPECT_EQ(problem.kind, DiagnosticKind::kEvaluatesTrainingData);
      told += problem.message.substr(problem.message.rfind('/', problem.message.find(':')) + 1);
    }
    return told.substr(0, told.find(':'));
  }

  TempRecipes files_;
};

TEST_F(LintsTrained, TheSeedOfTheTraining) {
  const std::string mock =
      std::string(kSmallRecipe) + "evaluation: {every_samples: 8, sets: [{name: x, samples: 1, seed: ";
  const Diagnostics same = Of(mock + "1234}]}\n");
  ASSERT_EQ(same.as_found().size(), 1U);
  EXPECT_THAT(same.as_found()[0].message, HasSubstr("has the seed of the training"));
  EXPECT_TRUE(Of(mock + "7}]}\n").empty());
}

// Patterns are not compared as texts.
TEST_F(LintsTrained, ShardsThatAreThere) {
  for (const char* name : {"a0.tar", "a1.tar", "b0.tar", "in/c.tar"}) files_.Write(name, std::string(1024, '\0'));
  EXPECT_EQ(OfShards("['a*.tar']", "['a*.tar']"), "a0.tar");
  EXPECT_EQ(OfShards("['a*.tar']", "[a1.tar]"), "a1.tar");
  EXPECT_EQ(OfShards("[a1.tar]", "['[ab]?.tar']"), "a1.tar");
  EXPECT_EQ(OfShards("['a{0,1}.tar']", "['{a1,a1}.tar']"), "a1.tar");
  EXPECT_EQ(OfShards("['*0.tar']", "['b*']"), "b0.tar");
  EXPECT_EQ(OfShards("['in/../a*.tar']", "[./a0.tar]"), "a0.tar");
  EXPECT_EQ(OfShards("['*/c.tar']", "['in/*']"), "c.tar");
  EXPECT_EQ(OfShards("['a*.tar']", "['b*.tar']"), "");
  EXPECT_EQ(OfShards("['*.tar']", "['in/*.tar']"), "");
}

// Of a folder of another machine, names are what patterns say.
TEST_F(LintsTrained, ShardsThatAreElsewhere) {
  EXPECT_EQ(OfShards("['/gone/{0..3}.tar']", "['/gone/{0..3}.tar']"), "0.tar");
  EXPECT_EQ(OfShards("['/gone/{0..3}.tar']", "['/gone/{3..5}.tar']"), "3.tar");
  EXPECT_EQ(OfShards("['/gone/a*.tar']", "['/gone/a0.tar']"), "a0.tar");
  EXPECT_EQ(OfShards("['/gone/{a,b}7.tar']", "['/gone/a?.tar']"), "a7.tar");
  EXPECT_EQ(OfShards("['/gone/{x,a}*.tar']", "['/gone/a*.tar']"), "a*.tar");
  EXPECT_EQ(OfShards("['/gone/{00000..59999}.tar']", "['/gone/59998.tar']"), "59998.tar");
  EXPECT_EQ(OfShards("['/gone/{0..3}.tar']", "['/gone/{4..5}.tar']"), "");
  EXPECT_EQ(OfShards("['/gone/a*.tar']", "['/away/a0.tar', '/gone/b*.tar']"), "");
  EXPECT_EQ(OfShards("['/gone/*.tar']", "['/gone/in/a0.tar']"), "");
}

}  // namespace
}  // namespace planwright
