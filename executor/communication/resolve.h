// From the name of a host to its addresses.
#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <string>
#include <vector>

namespace planwright::executor {

// The numeric addresses of a host, in the order in which they should be tried. A name that is not known (yet) is asked
// for again for `patience`, and then Unavailable, in one line. A numeric address is its own.
absl::StatusOr<std::vector<std::string>> Resolve(const std::string& host, std::chrono::milliseconds patience);

}  // namespace planwright::executor
