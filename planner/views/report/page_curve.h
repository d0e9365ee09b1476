// A curve over the steps of a run, as an SVG drawing: axes with round numbers, where lives began, checkpoints, skipped
// steps, and the steps that were done again.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "planner/views/report/run_report.h"

namespace planwright {

// Another line of the same drawing: the index of a step, which may lie between two, and the value there, ascending.
struct PageLine {
  std::string name, color;
  std::vector<std::pair<double, double>> points;
};

struct PageCurve {
  std::string title, unit;  // "throughput", "tokens/s"
  std::string color;        // class of the line: "m0l" (planner/base/paper/style.cc)
  Spread StepBin::*values = nullptr;
  double factor = 1;  // of each value
  // Steps that were done again: the index of the step that counts instead, and the value.
  std::vector<std::pair<int64_t, double>> again;
  bool from_zero = false;  // the axis begins at 0
  std::string name;        // of the line, where there are more
  std::vector<PageLine> more = {};
};

// The drawing under its title. Empty if no step has a value.
std::string CurveMarkup(const RunReport& report, const PageCurve& curve);

// An item of a legend: a chip in the color of a line ("m1l") and what it is; the name is escaped here.
std::string LineChip(const std::string& color, const std::string& name);

// Round numbers for an axis from `least` to `most` or a little beyond, 4 to 8, ascending. Both are finite.
std::vector<double> AxisTicks(double least, double most);

}  // namespace planwright
