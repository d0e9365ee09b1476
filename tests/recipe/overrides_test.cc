#include "gtest/gtest.h"
#include "planner/recipe/yaml/yaml_tree.h"
#include "tests/recipe/temp_recipes.h"

namespace planwright {
namespace {

TEST(Overrides, LieOverTheFileInOrder) {
  TempRecipes files;
  const std::string path = files.Write("r.yaml", kSmallRecipe);
  const Recipe recipe =
      MustRead(path, {"batch.global_samples=64", "modules.language.parallel.tp=2", "optimizer.betas=[0.7, 0.8]",
                      "data={seed: 5, classes: 2}", "batch.global_samples=128", "precision.params=\"fp32\""});
  EXPECT_EQ(*recipe.batch.global_samples, 128);
  EXPECT_EQ(*recipe.batch.sequence_length, 16);  // the file's
  EXPECT_EQ(*recipe.modules[0].tp, 2);
  EXPECT_EQ(recipe.optimizer.beta2, 0.8);
  EXPECT_EQ(*recipe.data.seed, 5);
  EXPECT_EQ(**recipe.data.image_token, 63);
  EXPECT_EQ(*recipe.precision, "fp32");
}

TEST(Overrides, ProblemsPointAtTheCommandLine) {
  TempRecipes files;
  const std::string path = files.Write("r.yaml", kSmallRecipe);
  const std::vector<std::string> overrides = {"log.every_steps=5", "batch.global_samples=many",
                                              "batch.global_sample=3"};
  Diagnostics problems;
  EXPECT_TRUE(ReadRecipe(path, overrides, problems)->batch.global_samples.where.broken);
  SourceTexts texts;
  AddOverrides(overrides, texts);
  EXPECT_EQ(RenderText(problems.sorted(), texts, false),
            "<command line>:2:22: error: `batch.global_samples` must be an integer, found the text \"many\" [PW0104 "
            "WrongType]\n"
            "   2 | batch.global_samples=many\n"
            "     |                      ^~~~\n"
            "<command line>:3:1: error: unknown key \"global_sample\" in `batch` [PW0101 UnknownKey]\n"
            "   3 | batch.global_sample=3\n"
            "     | ^~~~~~~~~~~~~~~~~~~\n"
            "  help: `global_samples` is there already; the keys here are global_samples, micro_samples, "
            "sequence_length\n");
}

// An item of a list has no name: it is said, with the list as it would be.
TEST(Overrides, LeadIntoNoList) {
  TempRecipes files;
  const std::string path = files.Write(
      "r.yaml", std::string(kSmallRecipe) + "optimizer: {parts: [{match: language, learning_rate: 1.0e-4}]}\n");
  for (const std::string item : {"optimizer.parts.0.learning_rate", "optimizer.parts[0].learning_rate"}) {
    Diagnostics problems;
    const std::optional<Recipe> recipe = ReadRecipe(path, {item + "=2.0e-4"}, problems);
    ASSERT_EQ(problems.as_found().size(), 1u) << item;
    EXPECT_EQ(
        problems.as_found()[0].message,
        "\"" + item +
            "=2.0e-4\" leads into a list: `optimizer.parts` is one value, and an override cannot change its items");
    EXPECT_EQ(problems.as_found()[0].help,
              "write the whole list: optimizer.parts=[{match: language, learning_rate: 2.0e-4}], or change it in the "
              "recipe");
    EXPECT_EQ(recipe->rate_parts.size(), 1u) << "left out";
  }
  EXPECT_EQ(MustRead(path, {"optimizer.parts=[{match: language, learning_rate: 2.0e-4}]"}).rate_parts.size(), 1u);
}

TEST(Overrides, AMissingKeyIsStillMissingInTheFile) {
  TempRecipes files;
  const std::string path = files.Write("r.yaml", "name: x\nbatch:\n  global_samples: 4\n");
  Diagnostics problems;
  ReadRecipe(path, {"batch.micro_samples=1"}, problems);
  bool found = false;
  for (const Diagnostic& problem : problems.sorted()) {
    if (problem.message != "`batch.sequence_length` is missing") continue;
    found = true;
    EXPECT_EQ(*problem.where.file, path);
    EXPECT_EQ(problem.where.line, 2);
  }
  EXPECT_TRUE(found);
}

TEST(Overrides, MalformedOnesAreRefused) {
  TempRecipes files;
  const std::string path = files.Write("r.yaml", kSmallRecipe);
  for (const std::string wrong : {"batch", "=3", "batch.=3", ".a=3", "a..b=1", "extends=x.yaml", "a=1\nb=2"}) {
    EXPECT_NE(Problems(path, {wrong}).find("BadOverride: "), std::string::npos) << wrong;
  }
  EXPECT_EQ(Problems(path, std::vector<std::string>(1001, "name=x")),
            "TooLarge: 1001 overrides with 6006 bytes exceed the limits of 1000 overrides and 131072 bytes\n");
  EXPECT_EQ(Problems(path, std::vector<std::string>(1000, "name=x")), "");
  EXPECT_NE(Problems(path, {"name=" + std::string(kLargestRecipe, 'x')}).find("TooLarge: 1 overrides"),
            std::string::npos);
  EXPECT_EQ(Problems(path, {"name="}), "WrongType: `name` must be text, found nothing\n");
  EXPECT_NE(Problems(path, {"name=[a"}).find("YamlSyntax"), std::string::npos);
}

}  // namespace
}  // namespace planwright
