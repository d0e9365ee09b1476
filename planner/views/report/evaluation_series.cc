#include "planner/views/report/evaluation_series.h"

#include <algorithm>
#include <utility>

namespace planwright {

void EvaluationSeries::Add(const EvaluationRecord& record) {
  seconds_ += std::max(0.0, record.seconds);
  for (const EvaluatedSet& set : record.sets) {
    std::string& digest = samples_digests_[set.name];
    if (std::exchange(digest, set.samples_digest) != set.samples_digest) best_.erase(set.name);
    if (!set.all.loss) continue;
    const Point point{record.step, record.consumed_samples, *set.all.loss};
    const auto [best, fresh] = best_.try_emplace(set.name, point);
    if (!fresh && point.loss < best->second.loss) best->second = point;
  }
  newest_ = record;
  if (count_++ % distance_ != 0) return;
  chosen_.push_back(record);
  if (chosen_.size() <= kMost) return;
  for (size_t i = 0; 2 * i < chosen_.size(); ++i) chosen_[i] = chosen_[2 * i];
  chosen_.resize((chosen_.size() + 1) / 2);
  distance_ *= 2;
}

std::vector<std::string> EvaluationSeries::sets() const {
  std::vector<std::string> names;
  if (empty()) return names;
  for (const EvaluatedSet& set : newest_->sets) names.push_back(set.name);
  return names;
}

std::vector<EvaluationSeries::Point> EvaluationSeries::Curve(const std::string& set) const {
  std::vector<Point> points;
  const auto digest = samples_digests_.find(set);
  for (const EvaluationRecord& record : chosen_) {
    for (const EvaluatedSet& one : record.sets) {
      if (one.name == set && one.samples_digest == digest->second && one.all.loss)
        points.push_back({record.step, record.consumed_samples, *one.all.loss});
    }
  }
  return points;
}

}  // namespace planwright
