#include "planner/search/results/tuned_recipe.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/recipe/scalar.h"
#include "planner/recipe/tree_edits.h"
#include "planner/recipe/yaml_tree.h"
#include "planner/search/results/key_tree.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;

// Keys whose values are paths as the file names them, or lists of paths.
constexpr std::string_view kPaths[] = {"cluster.profile",
                                       "data.path",
                                       "data.index",
                                       "data.shards",
                                       "data.sources[].path",
                                       "data.sources[].shards",
                                       "evaluation.sets[].path",
                                       "evaluation.sets[].shards",
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
  Diagnostics ignored;
  std::string read;
  const std::optional<YamlNode> node = ParseYaml(text, {}, ignored);
  return node && ReadString(*node, &read, nullptr);
}

std::string TextScalar(const std::string& text) { return IsText(text) ? ScalarText(text) : QuotedText(text); }

// Paths of the value of a key, which are seen from the current folder, as the file `path` names them. False: there are
// none. `key`: as in kPaths.
bool RenamePaths(const std::string& key, const std::string& path, YamlNode& value) {
  bool renamed = false;
  for (YamlEntry& entry : value.entries) renamed |= RenamePaths(InsidePath(key, entry.key), path, entry.value);
  const bool of_maps = !value.items.empty() && value.items[0].is_map();
  for (YamlNode& item : value.items) renamed |= RenamePaths(of_maps ? key + "[]" : key, path, item);
  // Weights of a module that are drawn.
  const bool drawn = key == "initialize.sources[].from" && value.text == kDrawn;
  if (!value.is_scalar() || drawn || std::find(std::begin(kPaths), std::end(kPaths), key) == std::end(kPaths))
    return renamed;
  value.text = PathFrom(FolderOfFile(path), value.text);
  value.quoted = !IsText(value.text);
  return true;
}

}  // namespace

std::string PathInFile(const std::string& named, const std::string& path) {
  return TextScalar(PathFrom(FolderOfFile(path), named));
}

std::string ForFile(const std::string& override, const std::string& path) {
  const size_t equals = override.find('=');
  if (equals == std::string::npos) return override;
  Diagnostics ignored;
  std::optional<YamlNode> value = ParseYaml(override.substr(equals + 1), {}, ignored);
  if (!value || !RenamePaths(override.substr(0, equals), path, *value)) return override;
  return absl::StrCat(override.substr(0, equals + 1), value->is_scalar() ? TextScalar(value->text) : FlowText(*value));
}

absl::StatusOr<std::string> RecipeOfLayout(const TunedRecipeText& recipe, const std::string& path) {
  KeyTree keys;
  for (const auto* part : {&recipe.overrides, &recipe.changes}) {
    for (const std::string& change : *part) {
      if (absl::Status status = keys.Set(ForFile(change, path)); !status.ok()) return status;
    }
  }
  if (!recipe.fallbacks.empty()) {
    std::vector<std::string> quoted;
    std::transform(recipe.fallbacks.begin(), recipe.fallbacks.end(), std::back_inserter(quoted), ScalarText);
    const std::string change = absl::StrCat("launch.fallbacks=[", absl::StrJoin(quoted, ", "), "]");
    if (absl::Status status = keys.Set(change); !status.ok()) return status;
  }
  return absl::StrCat(AsComment(recipe.comment), "extends: [", PathInFile(recipe.given, path), "]\n",
                      keys.empty() ? "" : "\n", keys.Yaml());
}

std::string FallbackPath(const std::string& path, int64_t gpus) {
  const fs::path file(path);
  const std::string name = absl::StrCat(file.stem().string(), "_", gpus, file.extension().string());
  return (file.parent_path() / name).string();
}

std::string AsComment(const std::string& text) {
  std::string comment;
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  for (std::string& line : lines) {
    while (line.ends_with(' ')) line.pop_back();
    absl::StrAppend(&comment, line.empty() ? "#" : "# ", line, "\n");
  }
  return comment;
}

}  // namespace planwright
