#include "planner/show/rate_curve.h"

#include <algorithm>

#include "planner/plan/lr_schedule.h"

namespace planwright {

int64_t TrainedSamples(const Budget& budget) {
  return std::max<int64_t>(budget.train_samples, budget.steps * budget.global_samples);
}

std::vector<RatePoint> RateCurve(const Budget& budget, int count) {
  const double end = static_cast<double>(TrainedSamples(budget));
  std::vector<RatePoint> points;
  for (int i = 0; i < count; ++i) {
    const double sample = end * i / (count - 1);
    points.push_back({static_cast<int64_t>(sample), LearningRateAt(budget.learning_rate, sample),
                      WeightDecayAt(budget.weight_decay, sample)});
  }
  return points;
}

}  // namespace planwright
