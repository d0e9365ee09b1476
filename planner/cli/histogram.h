// How often which numbers come, as bars of text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace planwright {

// Equal parts of the range from the least value to the largest, at most so many.
inline constexpr int64_t kHistogramBins = 12;

struct HistogramBin {
  int64_t first = 0, last = 0;  // both inclusive
  int64_t count = 0;
};
std::vector<HistogramBin> BinsOf(const std::vector<int64_t>& values);

// A title with the number of values, their mean and their largest, and a line for each bin. Empty without values.
std::string HistogramText(const std::string& title, const std::vector<int64_t>& values);
// {"values", "mean", "largest", "bins": [{"first", "last", "count"}]}
nlohmann::ordered_json HistogramJson(const std::vector<int64_t>& values);

}  // namespace planwright
