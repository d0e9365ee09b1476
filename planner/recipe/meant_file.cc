#include "planner/recipe/meant_file.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "planner/base/text/near_name.h"
#include "planner/base/text/utf8.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;

constexpr int kMostFoldersAround = 6;
constexpr size_t kMostNames = 1000, kMostFolders = 200;  // of a folder

bool IsFile(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

bool IsSame(const fs::path& a, const fs::path& b) {
  std::error_code error;
  return fs::equivalent(a, b, error);
}

// The path itself, or with the other ending of YAML files; empty: neither is a file.
fs::path WithAnyEnding(const fs::path& path) {
  if (IsFile(path)) return path;
  for (const char* ending : {".yaml", ".yml"}) {
    if (fs::path other = path; IsFile(other.replace_extension(ending))) return other;
  }
  return {};
}

// The file of a folder whose name is near.
fs::path NearIn(const fs::path& folder, const fs::path& name, const fs::path& own) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator at(folder, error), end; !error && at != end && names.size() < kMostNames;
       at.increment(error)) {
    const std::string known = at->path().filename().string();
    const std::string ending = at->path().extension().string();
    if ((ending == ".yaml" || ending == ".yml") && IsPrintable(known) && IsFile(at->path()) && !IsSame(at->path(), own))
      names.push_back(known);
  }
  // Endings are alike, and short names are near to too many.
  std::vector<std::string> stems;
  for (const std::string& known : names) stems.push_back(fs::path(known).stem().string());
  const std::optional<std::string> near = NearName(name.stem().string(), stems);
  if (!near || near->size() < 3) return {};
  return folder / names[static_cast<size_t>(std::find(stems.begin(), stems.end(), *near) - stems.begin())];
}

// Where recipes may lie: in a folder itself, in its `recipes`, and in those of the checkouts in it.
std::vector<fs::path> FoldersOfRecipes(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> folders;
  size_t seen = 0;
  for (fs::directory_iterator at(folder, error), end; !error && at != end && seen < kMostFolders; at.increment(error)) {
    ++seen;
    if (fs::is_directory(at->path() / "recipes", error)) folders.push_back(at->path() / "recipes");
    error.clear();
  }
  std::sort(folders.begin(), folders.end());
  folders.insert(folders.begin(), {folder, folder / "recipes"});
  return folders;
}

}  // namespace

std::string NearFile(const std::string& folder, const std::string& named, const std::string& own) {
  std::error_code error;
  const fs::path base = folder.empty() ? fs::path(".") : fs::path(folder), path(named);
  if (named.empty() || named.size() > 4096 || path.is_absolute()) return "";
  const fs::path self = base / own;
  const auto from_base = [&](const fs::path& file) {
    const fs::path from = fs::absolute(base, error).lexically_normal();
    return fs::absolute(file, error).lexically_normal().lexically_relative(from).string();
  };
  if (const fs::path same = WithAnyEnding(base / path); !same.empty() && !IsSame(same, self)) return from_base(same);
  if (const fs::path near = NearIn((base / path).parent_path(), path.filename(), self); !near.empty())
    return from_base(near);
  fs::path around = fs::absolute(base, error).lexically_normal();
  for (int i = 0; i < kMostFoldersAround && !error; ++i) {
    for (const fs::path& folder_of_recipes : FoldersOfRecipes(around)) {
      const fs::path found = WithAnyEnding(folder_of_recipes / path);
      if (!found.empty() && !IsSame(found, self) && IsPrintable(found.string())) return from_base(found);
    }
    if (!around.has_relative_path()) break;
    around = around.parent_path();
  }
  return "";
}

}  // namespace planwright
