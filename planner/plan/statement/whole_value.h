// The whole number that a formula over whole numbers has as its value.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

namespace planwright {

// Of a value in double: 64 / 49 * 49 comes out a rounding error below 64, and is 64. None: it is no whole number, too
// large for a double to have all of them (2^53), or no number at all, as after a division by 0.
inline std::optional<int64_t> WholeValue(double value) {
  constexpr double kLargest = 9007199254740992, kRounding = 1e-12;
  if (!(std::fabs(value) < kLargest)) return std::nullopt;
  const double nearest = std::round(value);
  if (std::fabs(value - nearest) > kRounding * std::max(1.0, std::fabs(value))) return std::nullopt;
  return static_cast<int64_t>(nearest);
}

}  // namespace planwright
