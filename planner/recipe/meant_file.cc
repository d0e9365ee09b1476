#include "planner/recipe/meant_file.h"

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
constexpr size_t kMostNames = 1000;  // of a folder

bool IsFile(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
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
fs::path NearIn(const fs::path& folder, const fs::path& name, const std::string& own) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator at(folder, error), end; !error && at != end && names.size() < kMostNames;
       at.increment(error)) {
    const std::string known = at->path().filename().string();
    const std::string ending = at->path().extension().string();
    if ((ending == ".yaml" || ending == ".yml") && known != own && IsPrintable(known) && IsFile(at->path()))
      names.push_back(known);
  }
  const std::optional<std::string> near = NearName(name.string(), names);
  return near ? folder / *near : fs::path();
}

}  // namespace

std::string NearFile(const std::string& folder, const std::string& named, const std::string& own) {
  std::error_code error;
  const fs::path base = folder.empty() ? fs::path(".") : fs::path(folder), path(named);
  if (named.empty() || named.size() > 4096 || path.is_absolute()) return "";
  const auto from_base = [&](const fs::path& file) { return fs::relative(file, base, error).string(); };
  if (const fs::path same = WithAnyEnding(base / path); !same.empty()) return from_base(same);
  if (const fs::path near = NearIn((base / path).parent_path(), path.filename(), own); !near.empty())
    return from_base(near);
  fs::path around = fs::absolute(base, error).lexically_normal();
  for (int i = 0; i < kMostFoldersAround && !error; ++i) {
    for (const char* inner : {"", "recipes"}) {
      const fs::path found = WithAnyEnding(around / inner / path);
      if (!found.empty() && found.filename() != own && IsPrintable(found.string())) return from_base(found);
    }
    if (!around.has_relative_path()) break;
    around = around.parent_path();
  }
  return "";
}

}  // namespace planwright
