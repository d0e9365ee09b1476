#include "planner/plan/relate_origins.h"

#include <filesystem>

namespace planwright {
namespace {

namespace fs = std::filesystem;

// "<command line>"
bool IsFile(const std::string& origin_file) { return !origin_file.empty() && origin_file.front() != '<'; }

}  // namespace

void RelateOrigins(const std::string& recipe_file, Plan& plan) {
  std::error_code error;  // without a working folder, paths stay as they are
  const fs::path folder = fs::absolute(recipe_file, error).lexically_normal().parent_path();
  for (Origin& origin : plan.origins) {
    if (!IsFile(origin.file)) continue;
    const fs::path related = fs::absolute(origin.file, error).lexically_normal().lexically_relative(folder);
    if (!error && !related.empty()) origin.file = related.string();
  }
}

std::string OriginFromHere(const std::string& recipe_file, const std::string& origin_file) {
  if (!IsFile(origin_file)) return origin_file;
  return (fs::path(recipe_file).parent_path() / origin_file).lexically_normal().string();
}

}  // namespace planwright
