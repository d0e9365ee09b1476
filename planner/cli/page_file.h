// The page of `--html FILE`, the same for all commands that draw one.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace planwright {

// Before a page is made: whether `file` can have it. `-` is stdout. InvalidArgument: no name, or a file that is there
// and is neither empty nor a page of `plan`, as what a slip of the keyboard names must stay. Errors of writing.
absl::Status CheckPageFile(const std::string& file);

// Prints it for `-`; else writes it, and says so on stderr. Errors as above.
absl::Status WritePageFile(const std::string& file, const std::string& page);

}  // namespace planwright
