#include "planner/search/results/tuned_recipe.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/recipe/format/key_order.h"
#include "planner/recipe/recipe_tree.h"
#include "planner/recipe/scalar.h"
#include "planner/recipe/tree_edits.h"
#include "planner/recipe/yaml/yaml_text.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;

// Keys whose values are paths as the file names them, or lists of paths.
constexpr std::string_view kPaths[] = {"cluster.profile",
                                       "data.path",
                                       "data.index",
                                       "data.sources[].path",
                                       "data.sources[].shards",
                                       "evaluation.sets[].path",
                                       "evaluation.sets[].sources[].path",
                                       "evaluation.sets[].sources[].shards",
                                       "initialize.from",
                                       "initialize.sources[].from",
                                       "launch.fallbacks"};

fs::path FolderOfFile(const std::string& path) {
  std::error_code error;
  return fs::weakly_canonical(fs::absolute(path, error), error).parent_path();
}

constexpr char kDrawn[] = "drawn";  // no path, where weights come from

// `named` as seen from the current folder, in the words of a file in `folder`.
std::string PathFrom(const fs::path& folder, const std::string& named) {
  if (fs::path(named).is_absolute()) return named;
  std::error_code error;
  const fs::path whole =
      fs::weakly_canonical(fs::absolute(named, error).parent_path(), error) / fs::path(named).filename();
  const std::string from = whole.lexically_relative(folder).string();
  return from == kDrawn ? absl::StrCat("./", from) : from;
}

// Whether YAML reads it as a text, and not as a number, a boolean or null.
bool IsText(const std::string& text) {
  std::string read;
  const std::optional<YamlNode> node = ParseValue(text);
  return node && ReadString(*node, &read, nullptr);
}

YamlNode PathNode(const std::string& path) { return ScalarNode(path, {}, /*quoted=*/!IsText(path)); }

// Paths of the value of a key, which are seen from the current folder, as a file in `folder` names them. `key`: as in
// kPaths.
void RenamePaths(const std::string& key, const fs::path& folder, YamlNode& value) {
  for (YamlEntry& entry : value.entries) RenamePaths(InsidePath(key, entry.key), folder, entry.value);
  const bool of_maps = !value.items.empty() && value.items[0].is_map();
  for (YamlNode& item : value.items) RenamePaths(of_maps ? key + "[]" : key, folder, item);
  // Weights of a module that are drawn.
  const bool drawn = key == "initialize.sources[].from" && value.text == kDrawn;
  if (value.is_scalar() && !drawn && std::find(std::begin(kPaths), std::end(kPaths), key) != std::end(kPaths))
    value.Replace(PathNode(PathFrom(folder, value.text)));
}

YamlNode ListOf(const std::vector<std::string>& paths) {
  YamlNode list;
  list.kind = YamlNode::Kind::kSequence;
  for (const std::string& path : paths) list.items.push_back(PathNode(path));
  return list;
}

// With paths as a file in `folder` names them.
std::string TextWith(YamlNode tree, const fs::path& folder, const std::string& extends, const std::string& comment) {
  if (!extends.empty())
    tree.entries.insert(tree.entries.begin(), YamlEntry{"extends", {}, ListOf({PathFrom(folder, extends)})});
  tree.comments = std::make_shared<const YamlComments>(YamlComments{.above = CommentLines(comment)});
  OrderKeys(tree);
  return YamlText(tree);
}

}  // namespace

std::string TextOfFile(YamlNode tree, const std::string& extends, const std::string& comment, const std::string& path) {
  const fs::path folder = FolderOfFile(path);
  RenamePaths("", folder, tree);
  return TextWith(std::move(tree), folder, extends, comment);
}

absl::StatusOr<std::string> RecipeOfLayout(const TunedRecipeText& recipe, const std::string& path) {
  YamlNode tree;
  tree.kind = YamlNode::Kind::kMap;
  for (const auto* part : {&recipe.overrides, &recipe.changes}) {
    if (absl::Status status = LayOverrides(*part, tree); !status.ok()) return status;
  }
  const fs::path folder = FolderOfFile(path);
  RenamePaths("", folder, tree);
  if (!recipe.fallbacks.empty()) PutValue("launch.fallbacks", ListOf(recipe.fallbacks), tree);
  return TextWith(std::move(tree), folder, recipe.given, recipe.comment);
}

std::string PathInFile(const std::string& named, const std::string& path) {
  return FlowText(PathNode(PathFrom(FolderOfFile(path), named)));
}

std::string FallbackPath(const std::string& path, int64_t gpus) {
  const fs::path file(path);
  const std::string name = absl::StrCat(file.stem().string(), "_", gpus, file.extension().string());
  return (file.parent_path() / name).string();
}

}  // namespace planwright
