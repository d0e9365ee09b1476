#include "planner/report/page_curve.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "planner/diagnostics/text.h"
#include "planner/show/page/markup.h"
#include "planner/show/table.h"

namespace planwright {
namespace {

constexpr double kLeft = 84, kWidth = 956, kTop = 22, kHeight = 190;
constexpr size_t kMostMarks = 400;  // of one kind: more cannot be told apart

std::string Number(double value) { return absl::StrFormat("%.5g", value); }

// The least, the mean and the most of the values of some steps.
struct Bin {
  double least = 0, mean = 0, most = 0;
  int count = 0;
};

Bin BinOf(const std::vector<std::optional<double>>& values, size_t first, size_t end) {
  Bin bin;
  for (size_t i = first; i < end; ++i) {
    if (!values[i]) continue;
    bin.least = bin.count == 0 ? *values[i] : std::min(bin.least, *values[i]);
    bin.most = bin.count == 0 ? *values[i] : std::max(bin.most, *values[i]);
    ++bin.count;
    bin.mean += (*values[i] - bin.mean) / bin.count;
  }
  return bin;
}

class CurveDrawing {
 public:
  CurveDrawing(const RunReport& report, const PageCurve& curve)
      : report_(report), curve_(curve),
        drawing_(kLeft + kWidth + 16, kTop + kHeight + 40, Cat(curve.title, " over steps")) {
    Bin all = BinOf(curve.values, 0, curve.values.size());
    for (const auto& [index, value] : curve.again)
      all.least = std::min(all.least, value), all.most = std::max(all.most, value);
    ticks_ = AxisTicks(curve.from_zero ? std::min(0.0, all.least) : all.least, all.most);
  }

  std::string Markup() {
    DrawMarks();
    DrawAxes();
    DrawLines();
    DrawProbes();
    return drawing_.Markup();
  }

 private:
  size_t steps() const { return report_.steps.size(); }
  double X(size_t index) const {
    if (steps() < 2) return kLeft + kWidth / 2;
    return kLeft + kWidth * static_cast<double>(index) / static_cast<double>(steps() - 1);
  }
  double Y(double value) const {
    return kTop + kHeight - kHeight * (value - ticks_.front()) / (ticks_.back() - ticks_.front());
  }
  // The first step of these samples or more.
  size_t IndexOf(int64_t samples) const {
    const auto at = std::lower_bound(report_.steps.begin(), report_.steps.end(), samples,
                                     [](const StepPoint& point, int64_t wanted) { return point.samples < wanted; });
    return static_cast<size_t>(at - report_.steps.begin());
  }

  void DrawAxes() {
    for (double tick : ticks_) {
      drawing_.Line(kLeft, Y(tick), kLeft + kWidth, Y(tick), "axis");
      drawing_.Text(kLeft - 8, Y(tick) + 4, Number(tick), "end small");
    }
    // Five steps at most, at even distances.
    const size_t labels = std::min<size_t>(steps(), 5);
    for (size_t i = 0; i < labels; ++i) {
      const size_t index = labels < 2 ? 0 : (steps() - 1) * i / (labels - 1);
      drawing_.Text(X(index), kTop + kHeight + 22, Cat(i == 0 ? "step " : "", WithCommas(report_.steps[index].step)),
                    i > 0 && i + 1 == labels ? "end small" : "mid small");
    }
  }

  void DrawMarks() {
    const size_t first_again = report_.lives.size() - std::min(report_.lives.size(), kMostMarks);
    for (size_t i = first_again; i < report_.lives.size() && steps() > 1; ++i) {
      const std::vector<StepPoint>& dropped = report_.lives[i].dropped;
      if (dropped.empty()) continue;
      const size_t last = std::min(IndexOf(dropped.back().samples), steps() - 1);
      const double left = X(std::min(IndexOf(dropped.front().samples), last));
      drawing_.Rect(left, kTop, std::max(2.0, X(last) - left), kHeight, "m4",
                    Cat("life ", report_.lives[i].number, " did steps ", WithCommas(dropped.front().step), " to ",
                        WithCommas(dropped.back().step), " again"));
    }
    const size_t lives = report_.lives.size(), first_life = lives - std::min(lives, kMostMarks);
    double free_from = kLeft;  // names of lives do not overlap
    for (size_t i = std::max<size_t>(first_life, 1); i < lives; ++i) {
      const RunLife& life = report_.lives[i];
      if (life.last_step == 0) continue;
      const auto begin = std::find_if(report_.steps.begin(), report_.steps.end(),
                                      [&](const StepPoint& point) { return point.step == life.first_step; });
      if (begin == report_.steps.end()) continue;
      const double x = X(static_cast<size_t>(begin - report_.steps.begin()));
      drawing_.Line(x, kTop, x, kTop + kHeight, "limit");
      const std::string name = Cat("life ", life.number);
      if (x < free_from) continue;
      drawing_.Text(x, kTop - 7, name, "mid small soft");
      free_from = x + LabelWidth(name) + 6;
    }
    size_t shown = 0;
    for (size_t i = report_.checkpoints.size(); i-- > 0 && shown < kMostMarks;) {
      const ReportedCheckpoint& checkpoint = report_.checkpoints[i];
      const auto at = std::find_if(report_.steps.begin(), report_.steps.end(),
                                   [&](const StepPoint& point) { return point.step == checkpoint.step; });
      if (at == report_.steps.end()) continue;
      drawing_.Rect(X(static_cast<size_t>(at - report_.steps.begin())) - 1.5, kTop + kHeight + 2, 3, 6, "m1b",
                    Cat("checkpoint of step ", WithCommas(checkpoint.step), ", life ", checkpoint.life));
      ++shown;
    }
    shown = 0;
    for (size_t i = 0; i < steps() && shown < kMostMarks; ++i) {
      if (!report_.steps[i].skipped) continue;
      drawing_.Rect(X(i) - 1.5, kTop, 3, 8, "m4b", Cat("step ", WithCommas(report_.steps[i].step), " was skipped"));
      ++shown;
    }
  }

  void DrawLines() {
    const size_t columns = std::min(steps(), static_cast<size_t>(kWidth));
    std::string line, upper, lower;
    double x = 0;
    for (size_t column = 0; column < columns; ++column) {
      const size_t first = steps() * column / columns, end = steps() * (column + 1) / columns;
      const Bin bin = BinOf(curve_.values, first, end);
      if (bin.count == 0) continue;
      x = X((first + end - 1) / 2);
      Append(line, line.empty() ? "M" : " L", Px(x), " ", Px(Y(bin.mean)));
      Append(upper, upper.empty() ? "M" : " L", Px(x), " ", Px(Y(bin.most)));
      lower = Cat(" L", Px(x), " ", Px(Y(bin.least)), lower);
    }
    // Where a column stands for several steps: from the least to the most of them.
    if (steps() > columns) drawing_.Path(Cat(upper, lower, " Z"), "band");
    // The steps that were lost are under the line of those that count. A new piece begins where they go back.
    std::string again;
    for (size_t i = 0; i < curve_.again.size(); ++i) {
      const auto& [index, value] = curve_.again[i];
      const bool goes_on = i > 0 && curve_.again[i - 1].first < index;
      Append(again, again.empty() ? "M" : goes_on ? " L" : " M", Px(X(index)), " ", Px(Y(value)));
    }
    if (!again.empty()) drawing_.Path(again, "wire m4l", "steps that were lost with their life and done again");
    drawing_.Path(line, Cat("curve ", curve_.color));
    if (line.find('L') == std::string::npos) {  // a line of one point is not seen
      const Bin bin = BinOf(curve_.values, 0, steps());
      drawing_.Rect(x - 3, Y(bin.mean) - 3, 6, 6, "m0b");
    }
  }

  // Invisible columns: the title of one says the numbers under the mouse, without a script.
  void DrawProbes() {
    const size_t probes = std::min<size_t>(steps(), 122);
    for (size_t i = 0; i < probes; ++i) {
      const size_t index = probes < 2 ? 0 : (steps() - 1) * i / (probes - 1);
      const StepPoint& point = report_.steps[index];
      const std::optional<double>& value = curve_.values[index];
      const double width = kWidth / static_cast<double>(probes);
      drawing_.Rect(kLeft + width * static_cast<double>(i), kTop, width, kHeight, "none probe",
                    Cat("step ", WithCommas(point.step), ", ", WithCommas(point.samples), " samples\n", curve_.title,
                        " ", value ? Number(*value) : "unknown", curve_.unit.empty() ? "" : " ", curve_.unit));
    }
  }

  const RunReport& report_;
  const PageCurve& curve_;
  Drawing drawing_;
  std::vector<double> ticks_;
};

}  // namespace

std::vector<double> AxisTicks(double least, double most) {
  if (!(most - least > 1e-250)) {  // the distance of ticks must be a normal number
    const double room = std::abs(least) < 1e-200 ? 1 : std::abs(least) * 0.1;
    least -= room, most += room;
  }
  const double raw = (most - least) / 5, power = std::pow(10, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (double digit : {5.0, 2.0, 1.0}) {
    if (digit * power >= raw) step = digit * power;
  }
  std::vector<double> ticks;
  const double first = std::floor(least / step);
  for (int i = 0; i < 12; ++i) {
    ticks.push_back((first + i) * step);
    if (ticks.back() >= most) break;
  }
  return ticks;
}

std::string CurveMarkup(const RunReport& report, const PageCurve& curve) {
  const bool empty = std::none_of(curve.values.begin(), curve.values.end(), [](const auto& value) { return !!value; });
  if (empty) return "";
  const std::string unit = curve.unit.empty() ? "" : Cat(", ", Escaped(curve.unit));
  return Cat("<h3>", Escaped(curve.title), unit, "</h3>\n", CurveDrawing(report, curve).Markup());
}

}  // namespace planwright
