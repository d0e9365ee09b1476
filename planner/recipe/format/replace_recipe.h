// Puts a formatted recipe in the place of the file that it was read from.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace planwright {

// The file keeps its owner, group and permissions, and the links to it stay. It is replaced as a whole where that keeps
// them. A file of somebody else, or one with several hard links, is written in place; if that fails, `before`, which it
// had, is written back. Errors, with the path, of base/files/file_io.h.
absl::Status ReplaceRecipe(const std::string& path, std::string_view before, std::string_view after);

}  // namespace planwright
