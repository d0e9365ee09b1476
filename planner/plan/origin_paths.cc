#include "planner/plan/origin_paths.h"

#include <filesystem>

namespace planwright {
namespace {

namespace fs = std::filesystem;

// Not a file: "", "<command line>".
bool IsFile(const std::string& origin_file) { return !origin_file.empty() && origin_file.front() != '<'; }

}  // namespace

void MakeOriginsRelative(const std::string& recipe_file, Plan& plan) {
  // The working folder may be gone: then std::filesystem cannot make paths absolute, and they stay as they are.
  std::error_code error;
  const fs::path folder = fs::absolute(recipe_file, error).lexically_normal().parent_path();
  for (Origin& origin : plan.origins) {
    if (!IsFile(origin.file)) continue;
    const fs::path relative = fs::absolute(origin.file, error).lexically_normal().lexically_relative(folder);
    if (!error && !relative.empty()) origin.file = relative.string();
  }
}

std::string OriginPathFromHere(const std::string& recipe_file, const std::string& origin_file) {
  if (!IsFile(origin_file)) return origin_file;
  return (fs::path(recipe_file).parent_path() / origin_file).lexically_normal().string();
}

}  // namespace planwright
