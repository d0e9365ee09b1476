#include "planner/data/samples/mixture.h"

#include <algorithm>
#include <numeric>
#include <queue>

#include "planner/base/text/bug.h"
#include "planner/plan/source_rules.h"

namespace planwright {
namespace {

// A row of counts is as long as there are sources. So all rows together are hardly longer than the table itself.
constexpr int64_t kBlock = 256;

// The next sample of a source that has not come yet.
struct Waiting {
  int64_t source = 0, number = 0;
  int64_t release = 0;   // the first n (from 1) as which it may come
  int64_t deadline = 0;  // (number + 1 - c) (2k - 2): the least deadline / weight comes first
};

}  // namespace

Mixture::Mixture(const std::vector<int64_t>& weights)
    : weights_(weights), period_(std::accumulate(weights.begin(), weights.end(), int64_t{0})),
      block_(std::max<int64_t>(kBlock, static_cast<int64_t>(weights.size()))) {
  Require(!weights.empty() && weights.size() < 65536 && *std::min_element(weights.begin(), weights.end()) >= 1 &&
              period_ <= kLongestPeriod,
          "a mixture of weights that the planner must have refused");
  if (weights_.size() > 1) Assign();
}

void Mixture::Assign() {
  const int64_t sources = static_cast<int64_t>(weights_.size()), scale = 2 * sources - 2;
  const auto next = [&](int64_t source, int64_t number) {
    // weight n scale >= period (number scale + 1), solved for the least whole n. All products are below 2^60: number is
    // below weight, scale below 2^17, period and weight below 2^20.
    const int64_t least = weights_[source] * scale;
    return Waiting{source, number, (period_ * (number * scale + 1) + least - 1) / least, (number + 1) * scale - 1};
  };
  const auto later_release = [](const Waiting& a, const Waiting& b) { return a.release > b.release; };
  const auto later_deadline = [&](const Waiting& a, const Waiting& b) {
    const int64_t left = a.deadline * weights_[b.source], right = b.deadline * weights_[a.source];
    return left != right ? left > right : a.source > b.source;
  };
  std::priority_queue<Waiting, std::vector<Waiting>, decltype(later_release)> waiting(later_release);
  std::priority_queue<Waiting, std::vector<Waiting>, decltype(later_deadline)> ready(later_deadline);
  for (int64_t source = 0; source < sources; ++source) waiting.push(next(source, 0));
  std::vector<uint32_t> counts(sources, 0);
  sources_.reserve(period_);
  for (int64_t n = 1; n <= period_; ++n) {
    if ((n - 1) % block_ == 0) counts_.insert(counts_.end(), counts.begin(), counts.end());
    for (; !waiting.empty() && waiting.top().release <= n; waiting.pop()) ready.push(waiting.top());
    // Tijdeman's theorem: one may always come, and it comes in time.
    Require(!ready.empty(), "a mixture without a source for a sample");
    const Waiting taken = ready.top();
    ready.pop();
    sources_.push_back(static_cast<uint16_t>(taken.source));
    ++counts[taken.source];
    if (taken.number + 1 < weights_[taken.source]) waiting.push(next(taken.source, taken.number + 1));
  }
}

Mixture::Turn Mixture::At(int64_t sample) const {
  if (weights_.size() == 1) return {0, sample};
  const int64_t periods = sample / period_, place = sample % period_, block = place / block_;
  const uint16_t source = sources_[place];
  const int64_t before = counts_[block * static_cast<int64_t>(weights_.size()) + source] +
                         std::count(sources_.begin() + block * block_, sources_.begin() + place, source);
  return {source, periods * weights_[source] + before};
}

std::vector<int64_t> Mixture::CountsOf(int64_t samples) const {
  if (weights_.size() == 1) return {samples};
  const int64_t periods = samples / period_, place = samples % period_, block = place / block_;
  std::vector<int64_t> counts;
  for (size_t source = 0; source < weights_.size(); ++source)
    counts.push_back(periods * weights_[source] + counts_[static_cast<size_t>(block) * weights_.size() + source]);
  for (int64_t at = block * block_; at < place; ++at) ++counts[sources_[at]];
  return counts;
}

}  // namespace planwright
