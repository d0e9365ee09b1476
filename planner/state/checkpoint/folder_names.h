// Folders of a run: what is in them, and the numbers in names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace planwright {

// Names in a folder. NotFound if there is none; Unavailable if it cannot be read.
absl::StatusOr<std::vector<std::string>> NamesIn(const std::string& folder);

// InvalidArgument, with the path and why, unless it is a folder that this user may look into.
absl::Status CheckFolder(const std::string& folder);

// The number that fills all of `text`; -1 if it is none.
int64_t NumberFrom(std::string_view text);

}  // namespace planwright
