// Stops the program with a message when Planwright itself is wrong. Never for bad input or a failing machine.
#pragma once

#include <string_view>

namespace planwright {

[[noreturn]] void Bug(std::string_view message);

inline void Require(bool condition, std::string_view message) {
  if (!condition) Bug(message);
}

}  // namespace planwright
