// The recipe of a layout: it extends the given one, and files that overrides name are found from its own folder.
#include "planner/tuned/tuned_recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(TunedRecipe, NamesFallbacksByTheirGpus) {
  EXPECT_EQ(FallbackPath("out/best.yaml", 128), "out/best_128.yaml");
  EXPECT_EQ(FallbackPath("a.b.yml", 8), "a.b_8.yml");
}

}  // namespace
}  // namespace planwright
