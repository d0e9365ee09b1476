// Keys of a kind that depend on each other: layers as a number of blocks or as a pattern, and numbers that have an
// effect beside some words of a choice alone. Keys of a section that another kind has, and words beside full.
#include <string>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/recipe/diagnostics/render.h"
#include "planner/recipe/recipe_reader.h"
#include "planner/recipe/recipe_tree.h"
#include "tests/support/folders.h"

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

// `moe` of hybrid_lm has keys that `moe` of decoder has not.
TEST(SectionsOfSeveralKinds, AKeyOfTheOtherKindSaysWhichHasIt) {
  const std::string told =
      Read("    layers: 1\n    moe: {experts: 4, top_k: 2, ffn: 8, normalized: true, shared_ffn: 4, scale: 2.5}")
          .second;
  EXPECT_THAT(told, HasSubstr("two_ways.yaml:7:59: error: unknown key \"shared_ffn\" in `models.lm.moe`"));
  EXPECT_THAT(told, HasSubstr("`shared_ffn` exists only for kind hybrid_lm, but the kind here is decoder"));
  EXPECT_THAT(told, HasSubstr("`scale` exists only for kind hybrid_lm, but the kind here is decoder"));
  EXPECT_THAT(told, Not(HasSubstr("is given here")));
}

TEST(SectionsOfSeveralKinds, AnOverrideOfTheOtherKindIsToldOnce) {
  Diagnostics problems;
  ReadRecipe(InSource("recipes/qwen3_moe_tiny.yaml"), {"models.decoder_tiny.moe.shared_ffn=4"}, problems);
  ASSERT_EQ(problems.as_found().size(), 1u);
  EXPECT_EQ(problems.as_found()[0].help, "`shared_ffn` exists only for kind hybrid_lm, but the kind here is decoder");
  EXPECT_EQ(*problems.as_found()[0].where.file, kCommandLine);
}

// All layers run again, so that words of layers beside full say nothing.
TEST(Recompute, FullIsBesideNoOtherWord) {
  for (const std::string word : {"mlp", "elementwise"}) {
    Diagnostics problems;
    ReadRecipe(InSource("recipes/qwen3_moe_tiny.yaml"), {"modules.language.recompute=[full, " + word + "]"}, problems);
    ASSERT_EQ(problems.as_found().size(), 1u) << word;
    EXPECT_EQ(problems.as_found()[0].kind, DiagnosticKind::kConflictingKeys);
    EXPECT_EQ(problems.as_found()[0].help, "remove " + word + ", or full");
  }
}

TEST(KeysWithAChoice, HaveAnEffectBesideItsWordsAlone) {
  EXPECT_EQ(Read("    layers: 1\n    rope: {scaling: llama3, factor: 8.0, low: 1.0}").second, "");
  EXPECT_EQ(Read("    layers: 1\n    rope: {theta: 5.0e+5}").second, "");
  const std::string told = Read("    layers: 1\n    rope: {scaling: linear, factor: 8.0, low: 1.0}").second;
  EXPECT_THAT(told,
              HasSubstr("two_ways.yaml:7:47: error: `models.lm.rope.low` has no effect: `rope.scaling` is linear"));
  EXPECT_THAT(told, HasSubstr("remove it, or use rope.scaling: llama3 or yarn"));
  EXPECT_THAT(told, HasSubstr("rope.scaling is here"));
  EXPECT_THAT(told, Not(HasSubstr("rope.factor")));
  EXPECT_THAT(Read("    layers: 1\n    rope: {factor: 8.0}").second,
              HasSubstr("`models.lm.rope.factor` has no effect: `rope.scaling` is none"));
}

}  // namespace
}  // namespace planwright
