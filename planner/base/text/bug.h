// Stops the program when Planwright itself has a bug. Never used for bad input (a Diagnostic) or for a failing machine
// (an absl::Status).
#pragma once

#include <string_view>

namespace planwright {

// Prints `message` and aborts.
[[noreturn]] void Bug(std::string_view message);

// Calls Bug unless `condition` holds. For what the code before must have made sure of.
inline void Require(bool condition, std::string_view message) {
  if (!condition) Bug(message);
}

}  // namespace planwright
