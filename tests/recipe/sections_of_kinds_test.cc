// Kinds of models with sections of one name: each has keys of its own in them. The program of these tests has a kind
// other_lm beside hybrid_lm, whose attention says key_heads for kv_groups.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "planner/plan/statement/built_in_kinds.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/model_facts.h"
#include "planner/recipe/override_keys.h"
#include "planner/recipe/recipe_reader.h"
#include "planner/recipe/recipe_reference.h"
#include "planner/recipe/recipe_schema.h"
#include "tests/plan/statement/toy_kind.h"

namespace planwright {

std::span<const KindText> BuiltInKinds() {
  static const std::string encoder = testing::StatementText("radio_vit"),
                           language = testing::StatementText("hybrid_lm");
  static const std::string other =
      absl::StrReplaceAll(language, {{"kind hybrid_lm", "kind other_lm"}, {"kv_groups", "key_heads"}});
  static const KindText kinds[] = {{"radio_vit.model", encoder}, {"hybrid_lm.model", language}, {"o.model", other}};
  return kinds;
}

namespace {

constexpr char kRecipe[] = R"(
name: two
models:
  first:
    kind: hybrid_lm
    pattern: "*"
    hidden: 16
    vocabulary: 32
    attention: {heads: 4, head_dim: 4, kv_groups: 2}
  second:
    kind: other_lm
    pattern: "*"
    hidden: 16
    vocabulary: 32
    attention: {heads: 4, head_dim: 4, KEY: 1}
modules:
  language:
    model: second
    placement: {first_rank: 0, ranks: 1}
batch: {global_samples: 1, micro_samples: 1, sequence_length: 8}
budget: {train_samples: 1, learning_rate: {peak: 1.0e-3, min: 0.0, style: constant}}
data: {kind: mock}
)";

Recipe ReadWith(const std::string& key, Diagnostics& problems) {
  return ReadRecipeText(absl::StrReplaceAll(kRecipe, {{"KEY", key}}), "two.yaml", problems).value();
}

TEST(SectionsOfKinds, EachKindReadsItsKeys) {
  Diagnostics problems;
  const Recipe recipe = ReadWith("key_heads", problems);
  for (const Diagnostic& problem : problems.as_found())
    EXPECT_NE(problem.kind, DiagnosticKind::kUnknownKey) << problem.message;
  const LocatedNumbers& numbers = recipe.modules.at(0).model.numbers;
  EXPECT_EQ(*SizeOf(numbers, "attention.key_heads"), 1);
  EXPECT_FALSE(numbers.contains("attention.kv_groups"));
}

TEST(SectionsOfKinds, AKeyOfTheOtherKindIsUnknown) {
  Diagnostics problems;
  ReadWith("kv_groups", problems);
  const std::vector<Diagnostic>& list = problems.as_found();
  const auto told = std::find_if(list.begin(), list.end(),
                                 [](const Diagnostic& problem) { return problem.kind == DiagnosticKind::kUnknownKey; });
  ASSERT_NE(told, list.end());
  EXPECT_EQ(told->where.line, 15);
  EXPECT_EQ(told->help, "`kv_groups` exists only for kind hybrid_lm, but the kind here is other_lm");
}

TEST(SectionsOfKinds, PagesSayOfWhichKindAKeyIs) {
  const std::string all = ExplainKey("models.lm.attention");
  const size_t second = all.find("models.<name>.attention (of kind other_lm)");
  ASSERT_NE(second, std::string::npos) << all;
  EXPECT_TRUE(absl::StrContains(all.substr(0, second), "kv_groups (of kind hybrid_lm)"));
  EXPECT_FALSE(absl::StrContains(all.substr(0, second), "key_heads"));
  EXPECT_TRUE(absl::StrContains(all.substr(second), "key_heads (of kind other_lm)"));
  EXPECT_FALSE(absl::StrContains(all.substr(second), "kv_groups"));
  const std::string page = RecipeReference();
  const size_t table = page.find("For kind `other_lm`:\n");
  ASSERT_NE(table, std::string::npos);
  EXPECT_TRUE(absl::StrContains(page.substr(table), "`models.<name>.attention.key_heads`"));
  EXPECT_FALSE(absl::StrContains(page.substr(table), "`models.<name>.attention.kv_groups`"));
  const std::string schema = RecipeSchema().dump();
  EXPECT_TRUE(absl::StrContains(schema, "key_heads") && absl::StrContains(schema, "kv_groups"));
}

TEST(SectionsOfKinds, OverridesAreOfTheKind) {
  Diagnostics problems;
  const Recipe recipe = ReadWith("key_heads", problems);
  const auto has = [&](const std::string& path) {
    const std::vector<OverrideKey> keys = OverrideKeys(*recipe.tree);
    return std::any_of(keys.begin(), keys.end(), [&](const OverrideKey& key) { return key.path == path; });
  };
  EXPECT_TRUE(has("models.first.attention.kv_groups"));
  EXPECT_FALSE(has("models.first.attention.key_heads"));
  EXPECT_TRUE(has("models.second.attention.key_heads"));
  EXPECT_FALSE(has("models.second.attention.kv_groups"));
}

}  // namespace
}  // namespace planwright
