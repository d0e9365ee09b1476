#include "planner/budget/segments.h"

#include <algorithm>
#include <cmath>

namespace planwright {

std::vector<Segment> SegmentsOf(const LearningRate& rate, int64_t train_samples) {
  const int64_t warmup = static_cast<int64_t>(std::ceil(rate.warmup_samples));
  int64_t decay = warmup, end = rate.decay_samples;
  if (rate.style == "constant") decay = end = train_samples;
  // a tail longer than the rest starts at once
  if (rate.style == "wsd") decay = std::max(warmup, rate.decay_samples - rate.wsd_decay_samples);

  std::vector<Segment> segments;
  int64_t first = 0;
  auto add = [&](const char* kind, int64_t until) {
    until = std::min(until, train_samples);
    if (until <= first) return;
    segments.push_back({kind, first, until});
    first = until;
  };
  add("warmup", warmup);
  add("stable", decay);
  add("decay", end);
  add("end", train_samples);
  return segments;
}

}  // namespace planwright
