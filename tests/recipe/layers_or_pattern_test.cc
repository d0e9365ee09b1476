// Layers of a kind that recipes give in one of two ways: as a number of blocks, or as a pattern.
#include <string>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/recipe/diagnostics/render.h"
#include "planner/recipe/recipe_reader.h"

namespace planwright {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kRecipe[] = R"(name: two_ways
cluster: {nodes: 1, gpus_per_node: 1, gpu: none}
models:
  lm:
    kind: decoder
LAYERS
    hidden: 16
    vocabulary: 64
    attention: {heads: 2, head_dim: 8, kv_groups: 1}
    mlp: {ffn: 24}
modules:
  language: {model: lm, placement: {first_rank: 0, ranks: 1}}
batch: {global_samples: 1, sequence_length: 8}
budget: {train_samples: 1, learning_rate: {peak: 1.0e-3}}
data: {kind: mock, max_images: 0, classes: 2, text_tokens: 4}
)";

// The pattern of the model, and what is told.
std::pair<std::string, std::string> Read(const std::string& layers) {
  Diagnostics problems;
  const std::string text = absl::StrReplaceAll(kRecipe, {{"LAYERS", layers}});
  const std::optional<Recipe> recipe = ReadRecipeText(text, "two_ways.yaml", problems);
  SourceTexts texts;
  texts.Add("two_ways.yaml", text);
  return {recipe ? *recipe->modules.at(0).model.pattern : "none", RenderText(problems.sorted(), texts, false)};
}

TEST(LayersOrPattern, EachGivesTheLetters) {
  EXPECT_EQ(Read("    layers: 3"), std::make_pair(std::string("*-*-*-"), std::string()));
  EXPECT_EQ(Read("    pattern: \"**-\""), std::make_pair(std::string("**-"), std::string()));
}

TEST(LayersOrPattern, WithNeitherTheFirstIsMissing) {
  const std::string told = Read("").second;
  EXPECT_THAT(told, HasSubstr("`models.lm.layers` is missing"));
  EXPECT_THAT(told, HasSubstr("; or `pattern` in its place"));
  EXPECT_THAT(told, Not(HasSubstr("`models.lm.pattern` is missing")));
}

TEST(LayersOrPattern, BothContradictEachOther) {
  const std::string told = Read("    pattern: \"*-\"\n    layers: 1").second;
  EXPECT_THAT(told, HasSubstr("two_ways.yaml:6:5: error: `models.lm.pattern` and `layers` both say the same thing"));
  EXPECT_THAT(told, HasSubstr("remove one of the two"));
  EXPECT_THAT(told, HasSubstr("`layers` is here"));
}

TEST(LayersOrPattern, AWrongOneIsNotMissingToo) {
  EXPECT_THAT(Read("    layers: 0").second, Not(HasSubstr("missing")));
  EXPECT_THAT(Read("    layers: [1]").second, Not(HasSubstr("missing")));
}

}  // namespace
}  // namespace planwright
