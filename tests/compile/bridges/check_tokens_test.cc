#include "planner/compile/bridges/check_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/compile/bridges/route_bridges.h"
#include "tests/support/problems.h"
#include "tests/support/recipe_builder.h"

namespace planwright {
namespace {

using ::testing::ElementsAre;

// Bridges on lines 51 and 52, tokens on 61 and 62, data on 70.
Recipe TwoEncoders(std::optional<int64_t> first, std::optional<int64_t> second) {
  Recipe recipe = BuildRecipe({BuildEncoder(0, 2), BuildEncoder(2, 2, {}, 600, "audio"), BuildLanguage(4, 2)});
  recipe.data.where = Line(70);
  recipe.data.image_token = {511, Line(71)};
  for (int i = 0; i < 2; ++i) {
    recipe.bridges[i].where = Line(51 + i);
    if (const auto token = i == 0 ? first : second) recipe.bridges[i].token = {*token, Line(61 + i)};
  }
  return recipe;
}

std::vector<std::string> ProblemsOf(const Recipe& recipe) {
  Diagnostics diagnostics;
  const bool fine = CheckBridgeTokens(recipe, diagnostics);
  EXPECT_EQ(fine, diagnostics.empty());
  for (const Diagnostic& d : diagnostics.sorted()) EXPECT_FALSE(d.help.empty()) << d.message;
  return KindsAndLines(diagnostics);
}

TEST(CheckTokens, EachBridgeNamesItsOwn) {
  EXPECT_THAT(ProblemsOf(TwoEncoders(511, 512)), ElementsAre());
  EXPECT_THAT(ProblemsOf(TwoEncoders({}, 512)), ElementsAre("BridgeTokenMissing:51"));
  EXPECT_THAT(ProblemsOf(TwoEncoders({}, {})), ElementsAre("BridgeTokenMissing:51", "BridgeTokenMissing:52"));
  EXPECT_THAT(ProblemsOf(TwoEncoders(512, 512)), ElementsAre("RepeatedBridgeToken:62"));
  EXPECT_THAT(ProblemsOf(TwoEncoders(511, 131072)), ElementsAre("TokenOutsideVocabulary:62"));
}

TEST(CheckTokens, TheBytesTokenizerHasOneImageToken) {
  Recipe recipe = TwoEncoders(256, 257);
  recipe.data.kind = DataKind::kSources;
  EXPECT_THAT(ProblemsOf(recipe), ElementsAre("BridgeTokenNotInData:62"));
  recipe.bridges.pop_back();
  EXPECT_THAT(ProblemsOf(recipe), ElementsAre());
}

TEST(CheckTokens, ABridgeAloneTakesTheImageTokenOfTheData) {
  Recipe recipe = BuildRecipe({BuildEncoder(0, 2), BuildLanguage(2, 2)});
  recipe.data.image_token = {511, Line(71)};
  const auto token = [&] {
    Diagnostics diagnostics;
    return RouteBridges(recipe, {Grid{.dp = 2}, Grid{.first_rank = 2, .dp = 2}}, diagnostics)->front().token;
  };
  EXPECT_EQ(token(), 511);
  recipe.bridges[0].token = {7, Line(61)};
  EXPECT_THAT(ProblemsOf(recipe), ElementsAre("BridgeTokenNotInData:71"));
  recipe.data.image_token->value = 7;
  EXPECT_EQ(token(), 7);
  recipe.bridges[0].token.reset();
  recipe.data.kind = DataKind::kSources;
  EXPECT_EQ(token(), kBytesImageToken);
}

}  // namespace
}  // namespace planwright
