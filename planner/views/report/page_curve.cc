#include "planner/views/report/page_curve.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "planner/base/paper/markup.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"

namespace planwright {
namespace {

constexpr double kLeft = 84, kWidth = 956, kTop = 22, kHeight = 190;
constexpr size_t kMostMarks = StepSeries::kMostSkipped;  // of one kind: more cannot be told apart

std::string Number(double value) { return absl::StrFormat("%.5g", value); }

// The least and the most of these bins.
Spread SpreadOf(const StepSeries& steps, const PageCurve& curve, size_t first, size_t end) {
  Spread spread;
  for (size_t i = first; i < end; ++i) spread.Add(steps.bins()[i].*curve.values);
  spread.least *= curve.factor, spread.mean *= curve.factor, spread.most *= curve.factor;
  return spread;
}

class CurveDrawing {
 public:
  CurveDrawing(const RunReport& report, const PageCurve& curve)
      : report_(report), curve_(curve),
        drawing_(kLeft + kWidth + 16, kTop + kHeight + 40, Cat(curve.title, " over steps")) {
    Spread all = SpreadOf(report.steps, curve, 0, report.steps.bins().size());
    for (const auto& [index, value] : curve.again)
      all.least = std::min(all.least, value), all.most = std::max(all.most, value);
    for (const PageLine& line : curve.more) {
      for (const auto& [x, value] : line.points)
        all.least = std::min(all.least, value), all.most = std::max(all.most, value);
    }
    ticks_ = AxisTicks(curve.from_zero ? std::min(0.0, all.least) : all.least, all.most);
  }

  std::string Markup() {
    DrawMarks();
    DrawAxes();
    DrawLines();
    for (const PageLine& line : curve_.more) DrawMore(line);
    DrawProbes();
    return drawing_.Markup();
  }

 private:
  int64_t steps() const { return report_.steps.size(); }
  double X(int64_t index) const { return XOf(static_cast<double>(index)); }
  double XOf(double index) const {
    if (steps() < 2) return kLeft + kWidth / 2;
    return kLeft + kWidth * index / static_cast<double>(steps() - 1);
  }
  double Y(double value) const {
    return kTop + kHeight - kHeight * (value - ticks_.front()) / (ticks_.back() - ticks_.front());
  }
  void DrawAxes() {
    for (double tick : ticks_) {
      drawing_.Line(kLeft, Y(tick), kLeft + kWidth, Y(tick), "axis");
      drawing_.Text(kLeft - 8, Y(tick) + 4, Number(tick), "end small");
    }
    // Five steps at most, at even distances.
    const int64_t labels = std::min<int64_t>(steps(), 5);
    for (int64_t i = 0; i < labels; ++i) {
      const int64_t index = labels < 2 ? 0 : (steps() - 1) * i / (labels - 1);
      drawing_.Text(X(index), kTop + kHeight + 22, Cat(i == 0 ? "step " : "", WithCommas(report_.steps.StepAt(index))),
                    i > 0 && i + 1 == labels ? "end small" : "mid small");
    }
  }

  void DrawMarks() {
    const size_t first_again = report_.lives.size() - std::min(report_.lives.size(), kMostMarks);
    for (size_t i = first_again; i < report_.lives.size() && steps() > 1; ++i) {
      const DroppedSteps& dropped = report_.lives[i].dropped;
      if (dropped.empty()) continue;
      const int64_t last = std::min(report_.steps.IndexOfSamples(dropped.back().samples), steps() - 1);
      const double left = X(std::min(report_.steps.IndexOfSamples(dropped.front().samples), last));
      drawing_.Rect(left, kTop, std::max(2.0, X(last) - left), kHeight, "m4",
                    Cat("life ", report_.lives[i].number, " did steps ", WithCommas(dropped.front().step), " to ",
                        WithCommas(dropped.back().step), " again"));
    }
    const size_t lives = report_.lives.size(), first_life = lives - std::min(lives, kMostMarks);
    double free_from = kLeft;  // names of lives do not overlap
    for (size_t i = std::max<size_t>(first_life, 1); i < lives; ++i) {
      const RunLife& life = report_.lives[i];
      if (life.last_step == 0) continue;
      const std::optional<int64_t> begin = report_.steps.IndexOfStep(life.first_step);
      if (!begin) continue;
      const double x = X(*begin);
      drawing_.Line(x, kTop, x, kTop + kHeight, "limit");
      const std::string name = Cat("life ", life.number);
      if (x < free_from) continue;
      drawing_.Text(x, kTop - 7, name, "mid small soft");
      free_from = x + LabelWidth(name) + 6;
    }
    size_t shown = 0;
    for (size_t i = report_.checkpoints.size(); i-- > 0 && shown < kMostMarks;) {
      const ReportedCheckpoint& checkpoint = report_.checkpoints[i];
      const std::optional<int64_t> at = report_.steps.IndexOfStep(checkpoint.step);
      if (!at) continue;
      drawing_.Rect(X(*at) - 1.5, kTop + kHeight + 2, 3, 6, "m1b",
                    Cat("checkpoint of step ", WithCommas(checkpoint.step), ", life ", checkpoint.life));
      ++shown;
    }
    for (const auto& [index, step] : report_.steps.first_skipped())
      drawing_.Rect(X(index) - 1.5, kTop, 3, 8, "m4b", Cat("step ", WithCommas(step), " was skipped"));
  }

  void DrawLines() {
    const std::vector<StepBin>& bins = report_.steps.bins();
    const size_t columns = std::min(bins.size(), static_cast<size_t>(kWidth));
    std::string line, upper, lower;
    double x = 0;
    for (size_t column = 0; column < columns; ++column) {
      const size_t first = bins.size() * column / columns, end = bins.size() * (column + 1) / columns;
      const Spread bin = SpreadOf(report_.steps, curve_, first, end);
      if (bin.count == 0) continue;
      x = X((bins[first].first + bins[end - 1].first + bins[end - 1].steps - 1) / 2);
      Append(line, line.empty() ? "M" : " L", Px(x), " ", Px(Y(bin.mean)));
      Append(upper, upper.empty() ? "M" : " L", Px(x), " ", Px(Y(bin.most)));
      lower = Cat(" L", Px(x), " ", Px(Y(bin.least)), lower);
    }
    // Where a column stands for several steps: from the least to the most of them.
    if (steps() > static_cast<int64_t>(columns)) drawing_.Path(Cat(upper, lower, " Z"), "band");
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
      const Spread bin = SpreadOf(report_.steps, curve_, 0, bins.size());
      drawing_.Rect(x - 3, Y(bin.mean) - 3, 6, 6, "m0b");
    }
  }

  // Few points, so each is seen.
  void DrawMore(const PageLine& line) {
    constexpr size_t kMostDots = 60;
    std::string path;
    for (const auto& [x, value] : line.points) Append(path, path.empty() ? "M" : " L", Px(XOf(x)), " ", Px(Y(value)));
    drawing_.Path(path, Cat("curve ", line.color));
    if (line.points.size() > kMostDots) return;
    const std::string fill = line.color.substr(0, 2) + "b";
    for (const auto& [x, value] : line.points)
      drawing_.Rect(std::clamp(XOf(x) - 2.5, 0.0, kLeft + kWidth + 11), Y(value) - 2.5, 5, 5, fill);
  }

  // Invisible columns: the title of one says the numbers under the mouse, without a script.
  void DrawProbes() {
    const std::vector<StepBin>& bins = report_.steps.bins();
    const size_t probes = std::min<size_t>(bins.size(), 122);
    for (size_t i = 0; i < probes; ++i) {
      const size_t index = probes < 2 ? 0 : (bins.size() - 1) * i / (probes - 1);
      const StepBin& bin = bins[index];
      const Spread value = SpreadOf(report_.steps, curve_, index, index + 1);
      const double width = kWidth / static_cast<double>(probes);
      drawing_.Rect(kLeft + width * static_cast<double>(i), kTop, width, kHeight, "none probe",
                    Cat(bin.steps == 1 ? "step " : "mean of steps ", WithCommas(bin.first_step),
                        bin.steps == 1 ? "" : Cat(" to ", WithCommas(bin.last_step)), ", ",
                        WithCommas(bin.last_samples), " samples\n", curve_.title, " ",
                        value.count > 0 ? Number(value.mean) : "unknown", curve_.unit.empty() ? "" : " ", curve_.unit));
    }
  }

  const RunReport& report_;
  const PageCurve& curve_;
  Drawing drawing_;
  std::vector<double> ticks_;
};

std::string Legend(const PageCurve& curve) {
  if (curve.more.empty()) return "";
  std::string text = LineChip(curve.color, curve.name);
  for (const PageLine& line : curve.more) text += LineChip(line.color, line.name);
  return Cat("<div class=\"legend\">", text, "</div>\n");
}

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

std::string LineChip(const std::string& color, const std::string& name) {
  return Cat("<span><span class=\"chip ", color.substr(0, 2), "b\"></span>", Escaped(Printable(name)), "</span>");
}

std::string CurveMarkup(const RunReport& report, const PageCurve& curve) {
  if (SpreadOf(report.steps, curve, 0, report.steps.bins().size()).count == 0) return "";
  const std::string unit = curve.unit.empty() ? "" : Cat(", ", Escaped(curve.unit));
  return Cat("<h3>", Escaped(curve.title), unit, "</h3>\n", Legend(curve), CurveDrawing(report, curve).Markup());
}

}  // namespace planwright
