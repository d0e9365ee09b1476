// The stretches of the learning-rate curve over [0, train_samples): warmup, stable, decay, end. They touch; empty ones
// are left out.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

std::vector<Segment> SegmentsOf(const LearningRate& rate, int64_t train_samples);

}  // namespace planwright
