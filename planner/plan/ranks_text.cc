#include "planner/plan/ranks_text.h"

#include "planner/plan/plan.h"

namespace planwright {
namespace {

std::string RangeText(const RankRange& range) {
  const int last = range.first + (range.count - 1) * range.stride;
  if (range.count == 1) return std::to_string(range.first);
  // Two ranks with a gap read better as a list than as a range.
  std::string text =
      std::to_string(range.first) + (range.count == 2 && range.stride > 1 ? ", " : "-") + std::to_string(last);
  if (range.stride > 1 && range.count > 2) text += " by " + std::to_string(range.stride);
  return text;
}

}  // namespace

std::string RanksText(const std::vector<int>& ranks, size_t most) {
  const std::vector<RankRange> ranges = Compress(ranks);
  std::string text;
  for (size_t i = 0; i < ranges.size(); ++i) {
    // The largest rank stays: it says how far the list goes.
    if (ranges.size() > most && i == most - 1) return text + ", ... " + std::to_string(ranks.back());
    text += (i > 0 ? ", " : "") + RangeText(ranges[i]);
  }
  return text;
}

std::string RanksText(int first, int count) { return RangeText({first, count, 1}); }

}  // namespace planwright
