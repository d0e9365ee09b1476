// The recipe of a layout: it extends the given one, and files that overrides name are found from its own folder.
#include "planner/search/results/tuned_recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_split.h"
#include "planner/recipe/recipe_keys.h"
#include "planner/recipe/recipe_tree.h"

namespace planwright {
namespace {

// An override as the file out/best.yaml has it.
std::string InFile(const std::string& override) {
  YamlNode tree;
  tree.kind = YamlNode::Kind::kMap;
  EXPECT_TRUE(LayOverrides({override}, tree).ok()) << override;
  return TextOfFile(tree, "", "", "out/best.yaml");
}

TEST(TunedRecipe, ExtendsTheGivenOneByWhatChanges) {
  const auto text = RecipeOfLayout({.given = "recipes/a.yaml",
                                    .overrides = {"name=b"},
                                    .changes = {"batch.micro_samples=2"},
                                    .fallbacks = {"best_8.yaml", "best 4.yaml"},
                                    .comment = "one\n\ntwo  \n\n"},
                                   "best.yaml");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text,
            "# one\n#\n# two\nname: b\nextends: [recipes/a.yaml]\nbatch: {micro_samples: 2}\n"
            "launch: {fallbacks: [best_8.yaml, best 4.yaml]}\n");
  EXPECT_EQ(*RecipeOfLayout({.given = "a.yaml"}, "best.yaml"), "extends: [a.yaml]\n");
}

TEST(TunedRecipe, NamesFilesFromItsFolder) {
  EXPECT_EQ(PathInFile("a.yaml", "out/best.yaml"), "../a.yaml");
  EXPECT_EQ(PathInFile("out/a.yaml", "out/best.yaml"), "a.yaml");
  EXPECT_EQ(PathInFile("/else/a.yaml", "out/best.yaml"), "/else/a.yaml");
  EXPECT_EQ(InFile("cluster.profile=p.json"), "cluster: {profile: ../p.json}\n");
  EXPECT_EQ(InFile("cluster.profile='my p.json'"), "cluster: {profile: ../my p.json}\n");
  EXPECT_EQ(InFile("cluster.gpu=none"), "cluster: {gpu: none}\n");
}

TEST(TunedRecipe, NamesFilesWhoseNamesAreNoTexts) {
  for (const char* name : {"null", "1000", "1.5", "true", "a: b", "#a"})
    EXPECT_EQ(PathInFile(name, "best.yaml"), "\"" + std::string(name) + "\"");
  EXPECT_EQ(PathInFile("\"a\"", "best.yaml"), "\"\\\"a\\\"\"");
  EXPECT_EQ(PathInFile("drawn", "best.yaml"), "./drawn") << "drawn alone is no path";
  EXPECT_EQ(InFile("initialize.from='it''s'"), "initialize: {from: \"../it's\"}\n");
  EXPECT_EQ(InFile("initialize.from='./drawn'"), "initialize: {from: ../drawn}\n");
  EXPECT_EQ(InFile("initialize.from=out/drawn"), "initialize: {from: ./drawn}\n");
}

TEST(TunedRecipe, NamesFilesOfListsAndMaps) {
  EXPECT_EQ(InFile("launch.fallbacks=a.yaml"), "launch: {fallbacks: ../a.yaml}\n");
  EXPECT_EQ(InFile("data.sources=[{kind: webdataset, shards: [a.tar, 'b/{0..9}.tar', /c.tar]}]"),
            "data: {sources: [{kind: webdataset, shards: [../a.tar, \"../b/{0..9}.tar\", /c.tar]}]}\n");
  EXPECT_EQ(
      InFile("initialize.sources=[{for: language, from: hf}, {for: radio, from: drawn}, {for: x, from: ./drawn}]"),
      "initialize: {sources: [{for: language, from: ../hf}, {for: radio, from: drawn}, {for: x, from: ../drawn}]}\n");
  EXPECT_EQ(InFile("data={kind: recorded, path: 'out/1000'}"), "data: {kind: recorded, path: \"1000\"}\n");
  EXPECT_EQ(InFile("data={kind: mock,  seed: 5}"), "data: {kind: mock, seed: 5}\n");
}

// Keys that say in their help where their paths are seen from.
TEST(TunedRecipe, KnowsEveryKeyOfAPath) {
  int paths = 0;
  for (const KeySpec& spec : RecipeKeys()) {
    if (spec.help.find("relative to this file") == std::string::npos || spec.path == "extends") continue;
    // "a.b[].c" is a.b=[{c: x}].
    std::vector<std::string> parts = absl::StrSplit(std::string(spec.path), "[].");
    std::string value = "x";
    for (; parts.size() > 1; parts.pop_back()) value = "[{" + parts.back() + ": " + value + "}]";
    EXPECT_THAT(InFile(parts[0] + "=" + value), ::testing::HasSubstr("../x")) << spec.path;
    ++paths;
  }
  EXPECT_GE(paths, 8);
}

TEST(TunedRecipe, NamesFallbacksByTheirGpus) {
  EXPECT_EQ(FallbackPath("out/best.yaml", 128), "out/best_128.yaml");
  EXPECT_EQ(FallbackPath("a.b.yml", 8), "a.b_8.yml");
}

}  // namespace
}  // namespace planwright
