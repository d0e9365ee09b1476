// Recipe files on disk.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "planner/diagnostics/location.h"

namespace planwright {

// The bytes of a regular file of at most a byte more than kLargestRecipe. Folders, pipes and devices are refused.
absl::StatusOr<std::string> ReadRecipeFile(const std::string& path);

// A path named by a recipe: as it is if absolute, else beside the file that names it (the current folder for an
// override).
std::string ResolvePath(const std::string& path, const Location& named_at);

}  // namespace planwright
