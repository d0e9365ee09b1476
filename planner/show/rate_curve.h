// The learning rate and the weight decay over a whole training, at evenly spaced sample counts: what is drawn.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

struct RatePoint {
  int64_t sample = 0;
  double learning_rate = 0, weight_decay = 0;
};

// Samples that the training takes: its last step is a full batch.
int64_t TrainedSamples(const Budget& budget);

// `count` points (2 or more) from sample 0 to TrainedSamples.
std::vector<RatePoint> RateCurve(const Budget& budget, int count);

}  // namespace planwright
