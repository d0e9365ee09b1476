#include "planner/tuned/tuned_recipe.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/recipe/scalar.h"
#include "planner/recipe/yaml_tree.h"
#include "planner/tuned/key_tree.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;

// Keys whose value is one path.
constexpr const char* kPaths[] = {"cluster.profile", "data.path", "data.index", "initialize.from"};

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

// A text as a scalar that is read as a text, and not as a number, a boolean or null.
std::string TextScalar(const std::string& text) {
  Diagnostics ignored;
  std::string read;
  const std::optional<YamlNode> node = ParseYaml(text, {}, ignored);
  return node && ReadString(*node, &read, nullptr) ? ScalarText(text) : QuotedText(text);
}

}  // namespace

std::string PathInFile(const std::string& named, const std::string& path) {
  return TextScalar(PathFrom(FolderOfFile(path), named));
}

std::string ForFile(const std::string& override, const std::string& path) {
  for (const char* key : kPaths) {
    const std::string start = absl::StrCat(key, "=");
    if (!override.starts_with(start)) continue;
    Diagnostics ignored;
    const std::optional<YamlNode> value = ParseYaml(override.substr(start.size()), {}, ignored);
    if (value && value->is_scalar()) return start + PathInFile(value->text, path);
  }
  return override;
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
