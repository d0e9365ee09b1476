#include "planner/report/evaluation_series.h"

#include <algorithm>

namespace planwright {

void EvaluationSeries::Add(const EvaluationRecord& record) {
  seconds_ += std::max(0.0, record.seconds);
  for (const EvaluatedSet& set : record.sets) {
    if (!set.all.loss) continue;
    const auto [best, fresh] = best_.try_emplace(set.name, Best{record.step, *set.all.loss});
    if (!fresh && *set.all.loss < best->second.loss) best->second = {record.step, *set.all.loss};
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

std::optional<double> LossOf(const EvaluationRecord& record, const std::string& set) {
  for (const EvaluatedSet& one : record.sets) {
    if (one.name == set) return one.all.loss;
  }
  return std::nullopt;
}

}  // namespace planwright
