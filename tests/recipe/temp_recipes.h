// Recipe files of one test in a temporary folder, and the problems that the reader finds in them.
#pragma once

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "planner/recipe/diagnostics/render.h"
#include "planner/recipe/recipe_reader.h"

namespace planwright {

// The smallest recipe that is valid: one language module with one attention layer.
inline constexpr char kSmallRecipe[] = R"(name: small
models:
  lm:
    kind: hybrid_lm
    pattern: "*"
    hidden: 32
    vocabulary: 64
    attention: {heads: 4, head_dim: 8, kv_groups: 2}
modules:
  language: {model: lm, placement: {first_rank: 0, ranks: 1}}
batch: {global_samples: 4, sequence_length: 16}
budget: {train_samples: 40, learning_rate: {peak: 1.0e-3}}
data: {image_token: 63, max_images: 0}
)";

class TempRecipes {
 public:
  TempRecipes() {
    const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) /
              ("recipes_" + std::string(test->test_suite_name()) + "_" + test->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~TempRecipes() { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }

  std::string folder() const { return folder_.string(); }

 private:
  std::filesystem::path folder_;
};

// Kinds and messages of the problems of a recipe, one on each line: "UnknownKey: unknown key ...".
inline std::string Problems(const std::string& path, const std::vector<std::string>& overrides = {}) {
  Diagnostics problems;
  ReadRecipe(path, overrides, problems);
  std::string text;
  for (const Diagnostic& problem : problems.sorted())
    text += std::string(KindName(problem.kind)) + ": " + problem.message + "\n";
  return text;
}

// Reads a recipe that must have no errors.
inline Recipe MustRead(const std::string& path, const std::vector<std::string>& overrides = {}) {
  Diagnostics problems;
  std::optional<Recipe> recipe = ReadRecipe(path, overrides, problems);
  SourceTexts texts;
  EXPECT_TRUE(recipe.has_value() && !problems.has_errors()) << RenderText(problems.sorted(), texts, false);
  return recipe ? *std::move(recipe) : Recipe();
}

}  // namespace planwright
