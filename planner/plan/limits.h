// Sizes that no plan passes. They are far above what machines and models have, and keep whatever a file claims from costing more than a moment.
#pragma once

#include <cstddef>
#include <cstdint>

namespace planwright {

inline constexpr int64_t kMostRanks = 1 << 20;       // products of three sizes stay far from overflow
inline constexpr int64_t kMostListed = 1 << 21;      // rows of all runs of a plan's file together
inline constexpr size_t kLargestPlan = size_t{16} << 20;  // bytes of a plan's file
inline constexpr size_t kDeepestPlan = 16;           // levels of objects and lists in it; a written one has seven

}  // namespace planwright
