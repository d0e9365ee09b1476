#include "executor/program/divergence_rule.h"

#include <algorithm>
#include <cmath>

namespace planwright::executor {

void DivergenceRule::Resume(std::span<const double> losses) {
  losses_.clear();
  for (const double loss : losses) Keep(loss);
}

void DivergenceRule::Keep(double loss) {
  if (factor_ <= 0) return;
  losses_.push_back(loss);
  if (static_cast<int64_t>(losses_.size()) > window_) losses_.pop_front();
}

std::optional<double> DivergenceRule::Take(const std::optional<double>& loss) {
  if (factor_ <= 0 || !loss || !std::isfinite(*loss)) return std::nullopt;
  std::optional<double> beyond;
  if (!losses_.empty()) {
    const double least = *std::min_element(losses_.begin(), losses_.end());
    if (*loss > factor_ * least) beyond = least;
  }
  Keep(*loss);
  return beyond;
}

}  // namespace planwright::executor
