// The learning rate and the weight decay over a training, as points, and how a curve is drawn with box characters. The
// page draws the same points as SVG.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

struct RatePoint {
  int64_t sample = 0;
  double learning_rate = 0, weight_decay = 0;
};

// Samples that the training takes. The last step is a full batch, so it can be more than the budget asks for.
int64_t TrainedSamples(const Budget& budget);

// `count` points (2 or more) at even distances from sample 0 to TrainedSamples (docs/training/budget.md#learning-rate).
std::vector<RatePoint> RateCurve(const Budget& budget, int count);

// The step that takes this sample. Steps are counted from 1, samples from 0.
int64_t StepOfSample(const Budget& budget, int64_t sample);

// One column for each value, `height` lines (2 or more). Every line begins with `indent` characters that hold the
// numbers of the y axis, aligned to the right.
std::string LineChart(const std::vector<double>& values, int height, size_t indent);

// A ruler under a chart of `width` columns that names the parts of the x axis: "├ warmup ┼──── stable ────┼ decay ┤".
// `ends` are the ends of the parts as fractions of the whole, ascending. A name that does not fit is left out, and so
// is a part that is narrower than one column.
std::string PartsRuler(const std::vector<std::string>& names, const std::vector<double>& ends, int width,
                       size_t indent);

}  // namespace planwright
