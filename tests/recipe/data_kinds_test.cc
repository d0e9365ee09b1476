// The kinds of data in recipes: each is in the table of keys, in the schema and on the reference page, and one that is
// gone is told with what to write, and changed by its edits.
#include "planner/plan/data_kinds.h"

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "planner/plan/resize_words.h"
#include "planner/recipe/recipe_keys.h"
#include "planner/recipe/recipe_reference.h"
#include "planner/recipe/recipe_schema.h"
#include "planner/recipe/recipe_tree.h"
#include "planner/recipe/tree_edits.h"
#include "tests/recipe/temp_recipes.h"

namespace planwright {
namespace {

template <typename Rows>
std::vector<std::string> WordsOf(const Rows& rows) {
  std::vector<std::string> words;
  for (const auto& row : rows) words.emplace_back(row.word);
  return words;
}

template <typename Rows>
void ExpectChoices(const char* key, const Rows& rows) {
  const std::vector<std::string> words = WordsOf(rows);
  std::vector<std::string> meanings;
  for (const auto& row : rows) meanings.push_back(std::string(row.word) + ": " + std::string(row.meaning));
  const KeySpec& spec = *FindKey(std::string_view(key).substr(0, std::string_view(key).rfind('.')), "kind", "");
  EXPECT_EQ(ChoicesOf(spec), words) << key;
  EXPECT_EQ(spec.help, absl::StrJoin(meanings, "; ")) << key;
  EXPECT_NE(RecipeReference().find("| `" + std::string(key) + "` | " + absl::StrJoin(words, ", ") + " | "),
            std::string::npos)
      << key;
}

// Statements of models and plans have the same words.
TEST(DataKinds, ImagesAreMadeWithTheWordsOfPlans) {
  const auto words = [](const auto& all) { return std::vector<std::string>(std::begin(all), std::end(all)); };
  EXPECT_EQ(ChoicesOf(*FindKey("data", "resize", "sources")), words(kResizeWords));
  EXPECT_EQ(ChoicesOf(*FindKey("data", "grid", "sources")), words(kGridWords));
}

TEST(DataKinds, AreTheChoicesOfTheirKeysAndPages) {
  ExpectChoices("data.kind", DataKinds());
  ExpectChoices("data.sources[].kind", SourceKinds());
  ExpectChoices("evaluation.sets[].sources[].kind", SourceKinds());
  const nlohmann::ordered_json schema = RecipeSchema();
  const auto& data = schema["properties"]["data"]["properties"]["kind"]["enum"];
  EXPECT_EQ(data.get<std::vector<std::string>>(), WordsOf(DataKinds()));
  for (const DataKindRow& row : DataKinds()) EXPECT_TRUE(schema["definitions"].contains(row.word)) << row.word;
  for (const SourceKindRow& row : SourceKinds())
    EXPECT_TRUE(schema["definitions"].contains("sources_" + std::string(row.word))) << row.word;
}

TEST(DataKinds, HaveTheKeysThatTheirRowsSpeakOf) {
  for (const DataKindRow& row : DataKinds()) {
    const auto has = [&](const char* key) { return FindKey("data", key, row.word) != nullptr; };
    EXPECT_EQ(has("image_grids"), row.drawn) << row.word;
    EXPECT_EQ(has("path"), row.batch_file) << row.word;
    EXPECT_EQ(has("sources"), row.mixed) << row.word;
    EXPECT_EQ(has("index"), row.indexed) << row.word;
    EXPECT_EQ(has("tokenizer"), row.tokenized) << row.word;
    EXPECT_EQ(has("max_patches"), row.resized) << row.word;
    EXPECT_NE(FindKey("evaluation.sets[]", row.set.key, ""), nullptr) << row.word;
  }
  for (const SourceKindRow& row : SourceKinds()) {
    EXPECT_EQ(FindKey("data.sources[]", "shards", row.word) != nullptr, row.shards) << row.word;
    EXPECT_EQ(FindKey("data.sources[]", "path", row.word) != nullptr, !row.shards) << row.word;
  }
  // No key is of a kind that there is not.
  for (const KeySpec& key : RecipeKeys()) {
    if (key.kind.empty() || !(key.path.starts_with("data.") || key.path.starts_with("evaluation."))) continue;
    EXPECT_TRUE(key.path.find("sources[].") == std::string_view::npos ? DataKindFromName(key.kind).has_value()
                                                                      : SourceKindFromName(key.kind).has_value())
        << key.path << " of kind " << key.kind;
  }
}

constexpr char kGone[] = R"(extends: [small.yaml]
models: {lm: {vocabulary: 260}}
data:
  kind: webdataset
  shards: [a.tar, "b-{0..9}.tar"]
  tokenizer: bytes
  window: 32
evaluation:
  every_samples: 8
  sets: [{name: held, samples: 3, shards: c.tar}]
)";

// Everything that is told of a recipe, as people read it, with "r.yaml" for its path.
std::string Told(const TempRecipes& files, const std::vector<std::string>& overrides, std::vector<Edit>& edits) {
  const std::string path = files.folder() + "/r.yaml";
  Diagnostics problems;
  ReadRecipe(path, overrides, problems);
  for (const Diagnostic& problem : problems.sorted())
    edits.insert(edits.end(), problem.edits.begin(), problem.edits.end());
  SourceTexts texts;
  AddOverrides(overrides, texts);
  std::string text = RenderText(problems.sorted(), texts, false);
  for (size_t at; (at = text.find(path)) != std::string::npos;) text.replace(at, path.size(), "r.yaml");
  return text;
}

constexpr char kHelp[] =
    "  help: write kind: sources, and sources: [{kind: webdataset, shards: FILES}] in the place of shards; samples are "
    "packed in another way, so that a run begins anew\n";

TEST(DataKinds, ThatAreGoneAreToldWithWhatToWrite) {
  TempRecipes files;
  files.Write("small.yaml", kSmallRecipe);
  const std::string path = files.Write("r.yaml", kGone);
  std::vector<Edit> edits;
  EXPECT_EQ(Told(files, {}, edits),
            std::string("r.yaml:4:9: error: `data.kind` must be one of mock, recorded, sources, found \"webdataset\" "
                        "[PW0106 UnknownChoice]\n"
                        "   4 |   kind: webdataset\n"
                        "     |         ^~~~~~~~~~\n") +
                kHelp +
                "r.yaml:10:35: error: unknown key \"shards\" in `evaluation.sets[0]` [PW0101 UnknownKey]\n"
                "  10 |   sets: [{name: held, samples: 3, shards: c.tar}]\n"
                "     |                                   ^~~~~~\n"
                "  help: put them in `sources`: sources: [{kind: webdataset, shards: FILES}]\n");
  // The edits make of it what it was.
  Diagnostics problems;
  std::optional<YamlNode> tree = ReadRecipeTree(path, {}, problems);
  ASSERT_TRUE(tree);
  ApplyEdits(edits, *tree);
  const Recipe recipe = RecipeOfTree(*std::move(tree), problems);
  EXPECT_TRUE(problems.empty()) << problems.as_found().front().message;
  EXPECT_EQ(*recipe.data.kind, DataKind::kSources);
  EXPECT_EQ(*recipe.data.window, 32);
  ASSERT_EQ(recipe.data.sources.size(), 1u);
  EXPECT_EQ(*recipe.data.sources[0].kind, SourceKind::kWebdataset);
  ASSERT_EQ(recipe.data.sources[0].shards.size(), 2u);
  EXPECT_EQ(*recipe.data.sources[0].shards[1], "b-{0..9}.tar");
  ASSERT_EQ(recipe.evaluation->sets.size(), 1u);
  EXPECT_EQ(*recipe.evaluation->sets[0].sources.at(0).shards.at(0), "c.tar");
}

TEST(DataKinds, ThatAreGoneAreToldInOverrides) {
  TempRecipes files;
  files.Write("r.yaml", kSmallRecipe);
  std::vector<Edit> edits;
  EXPECT_EQ(Told(files, {"models.lm.vocabulary=260", "data={kind: webdataset, shards: a.tar}"}, edits),
            std::string("<command line>:2:13: error: `data.kind` must be one of mock, recorded, sources, found "
                        "\"webdataset\" [PW0106 UnknownChoice]\n"
                        "   2 | data={kind: webdataset, shards: a.tar}\n"
                        "     |             ^~~~~~~~~~\n") +
                kHelp);
  ASSERT_EQ(edits.size(), 3u);
  EXPECT_EQ(edits[2].path, "data.sources");
  EXPECT_EQ(edits[2].value, "[{kind: webdataset, shards: a.tar}]");
  // Of other data shards are a key that is gone, and have no place.
  EXPECT_EQ(Told(files, {"data.shards=a.tar"}, edits),
            "<command line>:1:1: error: unknown key \"shards\" in `data` [PW0101 UnknownKey]\n"
            "   1 | data.shards=a.tar\n"
            "     | ^~~~~~~~~~~\n"
            "  help: put them in `sources`: sources: [{kind: webdataset, shards: FILES}]\n");
}

TEST(DataKinds, ThatAreGoneAreExplained) {
  EXPECT_NE(ExplainKey("data.kind").find("data.kind: webdataset (gone)\n    write kind: sources, and "),
            std::string::npos);
  EXPECT_NE(ExplainKey("evaluation.sets[0].shards").find("(gone)\n    put them in `sources`"), std::string::npos);
}

}  // namespace
}  // namespace planwright
