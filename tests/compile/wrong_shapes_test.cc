// Recipes in which one value has another shape than its key takes (a number for a list, a list for a map, nothing),
// beside all keys that it may stand with, and beside those that it must not stand with. Each is refused, with a place.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "planner/compile/compile.h"
#include "planner/recipe/recipe_reader.h"
#include "planner/recipe/recipe_tree.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

constexpr const char* kShapes[] = {"1",    "text", "~",   "{}",      "[]",         "[1]",
                                   "[[]]", "[{}]", "[~]", "{a: {}}", "[[1, 2, 3]]"};

// Sections with every key at once, also with those that exclude each other.
const std::vector<std::vector<std::string>> kBases = {
    {"initialize={from: x, ignore: [a], optimizer: true, schedule: checkpoint, sources: [{for: language, from: y}, "
     "{for: vision, from: drawn}]}",
     "evaluation={every_samples: 8, sets: [{name: a, samples: 4, seed: 3, path: x, shards: [x], sources: [{name: s, "
     "kind: "
     "webdataset, shards: [x]}]}]}",
     "checkpoint={every_steps: 1, keep_last: 2, keep_best: a}", "lints={PW0407: off}",
     "launch={restarts: 1, fallbacks: [x], slurm: {mounts: [\"/a:/b\"], options: [--reservation=r]}}"},
    {"data={kind: sources, seed: 1, image_token: 7, tokenizer: ids, pad_token: 1, end_token: 2, sources: [{name: a, "
     "kind: "
     "webdataset, shards: [x]}, {name: t, kind: tokens, path: y}]}",
     "evaluation={every_samples: 8, sets: [{name: a, samples: 4, sources: [{name: s, kind: tokens, path: x}]}]}",
     "initialize={sources: [{for: language, from: y}, {for: vision, from: drawn}]}"},
};

// Puts all of a value at one place.
void Place(const Location& where, YamlNode& node) {
  node.where = where;
  for (YamlNode& item : node.items) Place(where, item);
  for (YamlEntry& entry : node.entries) {
    entry.key_where = where;
    Place(where, entry.value);
  }
}

// Calls `each` with a copy of `tree` in which the value of one key, or an item of a list of maps, is `value`.
void ReplaceEach(const YamlNode& tree, YamlNode& node, const YamlNode& value,
                 const std::function<void(const std::string& path, const YamlNode& changed)>& each,
                 const std::string& path = "") {
  const auto replace = [&](YamlNode& part, const std::string& at) {
    YamlNode kept = part;
    part = value;
    Place(kept.where, part);
    each(at, tree);
    part = std::move(kept);
    ReplaceEach(tree, part, value, each, at);
  };
  for (YamlEntry& entry : node.entries) replace(entry.value, path + "." + entry.key);
  for (size_t i = 0; i < node.items.size(); ++i) {
    if (node.items[i].is_map()) replace(node.items[i], path + "[" + std::to_string(i) + "]");
  }
}

TEST(WrongShapes, AreRefusedWithAPlaceAndNeverEndTheProgram) {
  int tried = 0, refused = 0;
  for (const std::vector<std::string>& base : kBases) {
    Diagnostics none;
    std::optional<YamlNode> tree = ReadRecipeTree(InSource("recipes/nemotron_moe_vlm_tiny.yaml"), base, none);
    ASSERT_TRUE(tree);
    for (const char* shape : kShapes) {
      const std::optional<YamlNode> value = ParseYaml(shape, {}, none);
      ASSERT_TRUE(value) << shape;
      ReplaceEach(*tree, *tree, *value, [&](const std::string& path, const YamlNode& changed) {
        SCOPED_TRACE(path + ": " + shape);
        ++tried;
        Diagnostics problems;
        const Recipe recipe = RecipeOfTree(changed, problems);
        KnownFiles files(recipe);
        CheckRecipe(recipe, files, problems);
        refused += problems.has_errors() ? 1 : 0;
        for (const Diagnostic& problem : problems.sorted()) {
          EXPECT_TRUE(problem.where.known()) << problem.message;
          EXPECT_NE(problem.kind, DiagnosticKind::kBrokenRule) << problem.message;
        }
      });
    }
  }
  RecordProperty("tried", tried);
  EXPECT_GT(tried, 1000);
  EXPECT_GT(refused, tried / 2);
}

}  // namespace
}  // namespace planwright
