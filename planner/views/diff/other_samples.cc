#include "planner/views/diff/other_samples.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "planner/data/samples/mixture.h"

namespace planwright {
namespace {

// Keeps `plan diff` fast. Mixtures that agree for so long agree until the end of most trainings.
constexpr int64_t kMostCompared = 4'000'000;

std::vector<int64_t> WeightsOf(const DataPlan& data) {
  std::vector<int64_t> weights;
  for (const SourcePlan& source : data.sources) weights.push_back(source.weight);
  return weights;
}

// For each source of `from`, its place in `to`; -1: there is no source with this name and the same documents. The name
// is in the key of the draws.
std::vector<int64_t> SameSources(const DataPlan& from, const DataPlan& to) {
  std::vector<int64_t> places;
  for (const SourcePlan& source : from.sources) {
    const auto same = std::find_if(to.sources.begin(), to.sources.end(), [&](const SourcePlan& other) {
      return other.name == source.name && other.kind == source.kind && other.shards == source.shards &&
             other.ignore == source.ignore && other.path == source.path;
    });
    places.push_back(same == to.sources.end() ? -1 : same - to.sources.begin());
  }
  return places;
}

}  // namespace

std::optional<int64_t> FirstOtherSample(const DataPlan& from, const DataPlan& to, int64_t first) {
  const std::vector<int64_t> a = WeightsOf(from), b = WeightsOf(to), places = SameSources(from, to);
  const int64_t periods =
      std::lcm(std::accumulate(a.begin(), a.end(), int64_t{0}), std::accumulate(b.begin(), b.end(), int64_t{0}));
  const Mixture mixture(a), other(b);
  const int64_t end = first + std::min(periods, kMostCompared);
  for (int64_t sample = first; sample < end; ++sample) {
    const Mixture::Turn turn = mixture.At(sample), there = other.At(sample);
    if (places[turn.source] != there.source || turn.number != there.number) return sample;
  }
  return periods <= kMostCompared ? std::nullopt : std::optional(end);
}

}  // namespace planwright
