#include "planner/run/outcome/slow_ranks.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace planwright {
namespace {

constexpr int64_t kSteps = 20;
constexpr double kRatio = 1.5;
constexpr double kExcess = 1.0;  // seconds, over all steps: 50 samples of the watchdog
constexpr size_t kFewestRanks = 3;

using Pace = std::map<int64_t, double>;  // step -> seconds computed

// Seconds in the first and in the second half of the steps that end with `last`; nullopt if one is missing.
std::optional<std::array<double, 2>> HalvesOf(const Pace& pace, int64_t last) {
  std::array<double, 2> halves = {};
  for (int64_t i = 0; i < kSteps; ++i) {
    const auto found = pace.find(last - kSteps + 1 + i);
    if (found == pace.end()) return std::nullopt;
    halves[i < kSteps / 2 ? 0 : 1] += found->second;
  }
  return halves;
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void FindInRole(const Role& role, const std::map<int, Pace>& paces, std::vector<SlowRank>& slow) {
  if (paces.size() < kFewestRanks) return;
  int64_t last = INT64_MAX;
  for (const auto& [rank, pace] : paces) last = std::min(last, pace.rbegin()->first);
  std::vector<double> first, second, both;
  std::map<int, std::array<double, 2>> halves;
  for (const auto& [rank, pace] : paces) {
    const auto found = HalvesOf(pace, last);
    if (!found) return;  // a rank is too far ahead, or the run is too short
    halves[rank] = *found;
    first.push_back((*found)[0]), second.push_back((*found)[1]), both.push_back((*found)[0] + (*found)[1]);
  }
  const double medians[] = {Median(first), Median(second)}, median = Median(both);
  for (const auto& [rank, half] : halves) {
    const double all = half[0] + half[1];
    if (half[0] <= kRatio * medians[0] || half[1] <= kRatio * medians[1] || all - median < kExcess) continue;
    slow.push_back({rank, role.name, last - kSteps + 1, last, all / kSteps, median / kSteps});
  }
}

}  // namespace

std::vector<SlowRank> FindSlowRanks(const Plan& plan,
                                    const std::function<std::optional<RankPosition>(int rank)>& read_recorder) {
  std::vector<SlowRank> slow;
  for (const Role& role : plan.roles) {
    std::map<int, Pace> paces;
    for (const RankRange& range : role.ranks) {
      for (int i = 0; i < range.count; ++i) {
        const int rank = range.first + i * range.stride;
        const std::optional<RankPosition> position = read_recorder(rank);
        if (!position || position->pace.empty()) continue;
        for (const RecordedPace& one : position->pace) paces[rank][one.step] = static_cast<double>(one.busy) / 1e9;
      }
    }
    FindInRole(role, paces, slow);
  }
  return slow;
}

}  // namespace planwright
