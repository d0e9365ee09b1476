#include "planner/views/show/curves.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "planner/base/paper/table.h"
#include "planner/plan/lr_schedule.h"

namespace planwright {
namespace {

std::string AxisNumber(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

std::string PadLeft(const std::string& text, size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

}  // namespace

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

int64_t StepOfSample(const Budget& budget, int64_t sample) {
  // A plan without a batch is shown too.
  return sample / std::max<int64_t>(1, budget.global_samples) + 1;
}

std::string LineChart(const std::vector<double>& values, int height, size_t indent) {
  if (values.empty()) return "";
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const double low = *least, span = *most > *least ? *most - *least : 1;  // a flat curve lies on the lowest line
  std::vector<int> level;
  for (double value : values) level.push_back(static_cast<int>(std::lround((value - low) / span * (height - 1))));
  std::vector<std::vector<std::string>> cells(height, std::vector<std::string>(values.size(), " "));
  for (size_t x = 0; x < values.size(); ++x) {
    const int to = level[x], from = x == 0 ? to : level[x - 1];
    if (from == to) {
      cells[to][x] = "─";
      continue;
    }
    // The curve turns twice in this column, and runs straight between the two corners.
    cells[from][x] = from < to ? "╯" : "╮";
    cells[to][x] = from < to ? "╭" : "╰";
    for (int between = std::min(from, to) + 1; between < std::max(from, to); ++between) cells[between][x] = "│";
  }
  std::string text;
  for (int y = height - 1; y >= 0; --y) {  // the top line comes first
    const bool labelled = y == 0 || y == height - 1 || (y == (height - 1) / 2 && *most > *least);
    std::string line =
        PadLeft(labelled ? AxisNumber(low + span * y / (height - 1)) : "", indent - 2) + (labelled ? " ┤" : " │");
    // A flat curve has a value on its lowest line only.
    if (*most == *least && y > 0) line = std::string(indent - 2, ' ') + " │";
    for (const std::string& cell : cells[y]) line += cell;
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string PartsRuler(const std::vector<std::string>& names, const std::vector<double>& ends, int width,
                       size_t indent) {
  std::string text(indent - 1, ' ');
  int at = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    // The last part ends at the last column, whatever its fraction rounds to.
    const int end = i + 1 == names.size() && ends[i] >= 1
                        ? width
                        : std::clamp(static_cast<int>(std::lround(ends[i] * width)), at, width);
    const int room = end - at - 1;  // without the mark at its start
    if (end == at) continue;        // narrower than a column
    text += at == 0 ? "├" : "┼";
    const int size = static_cast<int>(Width(names[i]));
    const bool fits = size + 2 <= room;
    const int left = fits ? (room - size - 2) / 2 : room;
    for (int c = 0; c < left; ++c) text += "─";
    if (fits) {
      text += " " + names[i] + " ";
      for (int c = left + size + 2; c < room; ++c) text += "─";
    }
    at = end;
  }
  return text + "┤\n";
}

}  // namespace planwright
