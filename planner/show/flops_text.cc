#include "planner/show/flops_text.h"

#include <iterator>

#include "absl/strings/str_format.h"

namespace planwright {

std::string FlopText(double flops) {
  constexpr const char* kUnits[] = {"", "k", "M", "G", "T", "P", "E"};
  size_t unit = 0;
  while (flops >= 1000 && unit + 1 < std::size(kUnits)) flops /= 1000, ++unit;
  return absl::StrFormat("%.4g %sFLOP", flops, kUnits[unit]);
}

std::string SecondsText(double seconds) {
  if (seconds >= 1 || seconds == 0) return absl::StrFormat("%.3g s", seconds);
  return seconds >= 1e-3 ? absl::StrFormat("%.3g ms", seconds * 1e3) : absl::StrFormat("%.3g µs", seconds * 1e6);
}

}  // namespace planwright
