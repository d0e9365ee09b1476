// Overrides as the text of a recipe: read again, it means the same.
#include "planner/search/results/key_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/recipe/recipe_digest.h"
#include "planner/recipe/recipe_tree.h"

namespace planwright {
namespace {

using ::testing::HasSubstr;

KeyTree TreeOf(const std::vector<std::string>& overrides) {
  KeyTree tree;
  for (const std::string& override : overrides) EXPECT_TRUE(tree.Set(override).ok()) << override;
  return tree;
}

std::string WhyNot(const std::vector<std::string>& overrides) {
  KeyTree tree;
  for (const std::string& override : overrides) {
    if (absl::Status status = tree.Set(override); !status.ok()) return std::string(status.message());
  }
  return "";
}

TEST(KeyTree, WritesSmallMapsInOneLine) {
  EXPECT_EQ(
      TreeOf({"modules.language.parallel.tp=2", "modules.language.parallel.stage_layers=[5, 6]",
              "modules.language.recompute=[mamba, moe]", "batch.micro_samples=4", "modules.language.parallel.tp=1"})
          .Yaml(),
      "modules:\n"
      "  language:\n"
      "    parallel: {tp: 1, stage_layers: [5, 6]}\n"
      "    recompute: [mamba, moe]\n"
      "batch: {micro_samples: 4}\n");
}

TEST(KeyTree, MeansWhatTheOverridesMean) {
  const std::vector<std::string> overrides = {"name=a",
                                              "name='b c'",
                                              "data.kind=mock",
                                              "data.seed=7",
                                              "data.kind=sources",
                                              "data.index=./x",
                                              "cluster={nodes: 2}",
                                              "launch.fallbacks=[a.yaml, 'b c.yaml']",
                                              "optimizer.eps=1e-8",
                                              "cluster=3"};
  // Overrides on an empty recipe, against the text.
  Diagnostics problems;
  const std::string text = TreeOf(overrides).Yaml();
  const auto read = RecipeTreeOfText(text, "text", problems);
  ASSERT_TRUE(read) << text;
  EXPECT_EQ(problems.sorted().size(), 0u);
  const auto expected = RecipeTreeOfText(
      "name: b c\ndata: {kind: sources, index: ./x}\ncluster: 3\nlaunch: {fallbacks: [a.yaml, b c.yaml]}\n"
      "optimizer: {eps: 1e-8}\n",
      "text", problems);
  EXPECT_EQ(RecipeDigest(*read), RecipeDigest(*expected)) << text;
}

TEST(KeyTree, RefusesWhatItCannotWrite) {
  EXPECT_THAT(WhyNot({"name=a: b"}), HasSubstr("cannot be written"));
  EXPECT_THAT(WhyNot({"name=[a"}), HasSubstr("cannot be written"));
  EXPECT_THAT(WhyNot({"name=[a]]"}), HasSubstr("cannot be written"));
  EXPECT_THAT(WhyNot({"name=[a] # b"}), HasSubstr("cannot be written"));
  EXPECT_THAT(WhyNot({"name="}), HasSubstr("cannot be written"));
  EXPECT_THAT(WhyNot({"name='a''"}), HasSubstr("cannot be written"));
  EXPECT_EQ(WhyNot({"name='it''s'"}), "");
  EXPECT_THAT(WhyNot({"cluster={nodes: 2}", "cluster.nodes=3"}), HasSubstr("write each of its keys"));
  EXPECT_THAT(WhyNot({"cluster.nodes=3", "cluster={nodes: 2}"}), HasSubstr("write each of its keys"));
}

TEST(KeyTree, PutsTextsInQuotesThatNeedThem) {
  EXPECT_EQ(ScalarText("../a-b_c.yaml"), "../a-b_c.yaml");
  EXPECT_EQ(ScalarText("it's"), "'it''s'");
  EXPECT_EQ(ScalarText(""), "''");
  EXPECT_EQ(ScalarText("-"), "'-'");
}

}  // namespace
}  // namespace planwright
