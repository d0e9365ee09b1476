// Files that a command may write again. What a slip of the keyboard names, such as a recipe or a shard, must stay.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace planwright {

// Before `file` is written: InvalidArgument, "FILE is there and is no WHAT", if a plain file is there that is not
// empty, and of which `is_own` does not know the first bytes. A pipe, a device and a folder are not its business.
absl::Status CheckOnlyOwn(const std::string& file, const std::string& what, bool (*is_own)(std::string_view head));

}  // namespace planwright
