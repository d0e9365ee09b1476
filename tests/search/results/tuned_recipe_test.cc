// The recipe of a layout: it extends the given one, and files that overrides name are found from its own folder.
#include "planner/search/results/tuned_recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_split.h"
#include "planner/recipe/recipe_keys.h"

namespace planwright {
namespace {

TEST(TunedRecipe, ExtendsTheGivenOneByWhatChanges) {
  const auto text = RecipeOfLayout({.given = "recipes/a.yaml",
                                    .overrides = {"name=b"},
                                    .changes = {"batch.micro_samples=2"},
                                    .fallbacks = {"best_8.yaml", "best 4.yaml"},
                                    .comment = "one\n\ntwo  \n\n"},
                                   "best.yaml");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text,
            "# one\n#\n# two\nextends: [recipes/a.yaml]\n\nname: b\nbatch: {micro_samples: 2}\n"
            "launch: {fallbacks: [best_8.yaml, 'best 4.yaml']}\n");
  EXPECT_EQ(*RecipeOfLayout({.given = "a.yaml"}, "best.yaml"), "extends: [a.yaml]\n");
}

TEST(TunedRecipe, NamesFilesFromItsFolder) {
  EXPECT_EQ(PathInFile("a.yaml", "out/best.yaml"), "../a.yaml");
  EXPECT_EQ(PathInFile("out/a.yaml", "out/best.yaml"), "a.yaml");
  EXPECT_EQ(PathInFile("/else/a.yaml", "out/best.yaml"), "/else/a.yaml");
  EXPECT_EQ(ForFile("cluster.profile=p.json", "out/best.yaml"), "cluster.profile=../p.json");
  EXPECT_EQ(ForFile("cluster.profile='my p.json'", "out/best.yaml"), "cluster.profile='../my p.json'");
  EXPECT_EQ(ForFile("cluster.gpu=none", "out/best.yaml"), "cluster.gpu=none");
}

TEST(TunedRecipe, NamesFilesWhoseNamesAreNoTexts) {
  for (const char* name : {"null", "1000", "1.5", "true", "a: b", "#a", "\"a\""})
    EXPECT_EQ(PathInFile(name, "best.yaml"), "'" + std::string(name) + "'");
  EXPECT_EQ(PathInFile("drawn", "best.yaml"), "./drawn") << "drawn alone is no path";
  EXPECT_EQ(ForFile("initialize.from='it''s'", "best.yaml"), "initialize.from='it''s'");
  EXPECT_EQ(ForFile("initialize.from='./drawn'", "best.yaml"), "initialize.from=./drawn");
}

TEST(TunedRecipe, NamesFilesOfListsAndMaps) {
  const auto in_out = [](const std::string& override) { return ForFile(override, "out/best.yaml"); };
  EXPECT_EQ(in_out("launch.fallbacks=a.yaml"), "launch.fallbacks=../a.yaml");
  EXPECT_EQ(in_out("data.shards=[a.tar, 'b/{0..9}.tar', /c.tar]"),
            "data.shards=[../a.tar, \"../b/{0..9}.tar\", /c.tar]");
  EXPECT_EQ(
      in_out("initialize.sources=[{for: language, from: hf}, {for: radio, from: drawn}, {for: x, from: ./drawn}]"),
      "initialize.sources=[{for: language, from: ../hf}, {for: radio, from: drawn}, {for: x, from: ../drawn}]");
  EXPECT_EQ(in_out("data={kind: recorded, path: 'out/1000'}"), "data={kind: recorded, path: \"1000\"}");
  EXPECT_EQ(in_out("data={kind: mock,  seed: 5}"), "data={kind: mock,  seed: 5}") << "as it was typed";
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
    EXPECT_THAT(ForFile(parts[0] + "=" + value, "out/best.yaml"), ::testing::HasSubstr("../x")) << spec.path;
    ++paths;
  }
  EXPECT_GE(paths, 9);
}

TEST(TunedRecipe, NamesFallbacksByTheirGpus) {
  EXPECT_EQ(FallbackPath("out/best.yaml", 128), "out/best_128.yaml");
  EXPECT_EQ(FallbackPath("a.b.yml", 8), "a.b_8.yml");
}

}  // namespace
}  // namespace planwright
