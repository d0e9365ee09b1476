#include <algorithm>
#include <cstdio>

#include "planner/base/paper/markup.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/text.h"
#include "planner/views/show/curves.h"
#include "planner/views/show/page/page.h"

namespace planwright {
namespace {

constexpr double kCurveLeft = 84, kCurveWidth = 976, kCurveTop = 22, kCurveHeight = 170;

std::string Short(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string Tiles(const Budget& budget) {
  std::string text = "<div class=\"tiles\">\n";
  text += Tile(WithCommas(budget.train_samples), "samples") + Tile(WithCommas(budget.steps), "steps");
  text += Tile(WithCommas(budget.global_samples), "samples a step") +
          Tile(WithCommas(budget.microbatches), "microbatches a step");
  text += Tile(WithCommas(budget.micro_samples), "samples of a lane's microbatch") +
          Tile(WithCommas(budget.sequence_length), "tokens a sample");
  text += "</div>\n";
  if (budget.samples_past_budget == 0) return text;
  return Cat(text, "<p class=\"soft\">The last step is full: ", WithCommas(budget.samples_past_budget),
             " samples past the budget.</p>\n");
}

// What is drawn of each point, and how.
struct CurveStyle {
  const char* name;
  const char* color;
  double RatePoint::*value;
};

// Where a sample is drawn. A segment can end behind the training: it is cut there.
double XOf(double sample, double end) { return kCurveLeft + kCurveWidth * std::clamp(sample / end, 0.0, 1.0); }

// Bands behind the curve, every second one shaded, with their names where there is room.
void DrawSegments(const Budget& budget, double end, Drawing& drawing) {
  for (size_t i = 0; i < budget.segments.size(); ++i) {
    const Segment& segment = budget.segments[i];
    const double x1 = XOf(static_cast<double>(segment.first_sample), end),
                 x2 = XOf(static_cast<double>(segment.end_sample), end);
    drawing.Rect(
        x1, kCurveTop, x2 - x1, kCurveHeight, i % 2 == 0 ? "band" : "none",
        Cat(segment.kind, ": samples ", WithCommas(segment.first_sample), " to ", WithCommas(segment.end_sample)));
    if (x2 - x1 > 10 + 7 * static_cast<double>(segment.kind.size()))
      drawing.Text((x1 + x2) / 2, kCurveTop - 7, segment.kind, "mid small soft");
    drawing.Line(x2, kCurveTop, x2, kCurveTop + kCurveHeight, "axis");
  }
}

std::string CurveDrawing(const Budget& budget, const std::vector<RatePoint>& points, const CurveStyle& curve) {
  const double end = static_cast<double>(std::max<int64_t>(1, TrainedSamples(budget)));
  double most = 0;
  for (const RatePoint& point : points) most = std::max(most, point.*curve.value);
  // From 0, with some room above the highest point.
  const auto y = [&](double value) {
    return kCurveTop + kCurveHeight - (most > 0 ? value / most : 0) * (kCurveHeight - 8);
  };
  Drawing drawing(kCurveLeft + kCurveWidth + 16, kCurveTop + kCurveHeight + 24, Cat(curve.name, " over samples"));
  DrawSegments(budget, end, drawing);
  for (int i = 0; i <= 2; ++i) {
    drawing.Line(kCurveLeft, y(most * i / 2), kCurveLeft + kCurveWidth, y(most * i / 2), "axis");
    drawing.Text(kCurveLeft - 8, y(most * i / 2) + 4, Short(most * i / 2), "end small");
    if (most == 0) break;  // the three labels would lie on one line
  }
  for (int i = 0; i <= 4; ++i) {
    drawing.Text(kCurveLeft + kCurveWidth * i / 4, kCurveTop + kCurveHeight + 16,
                 WithCommas(static_cast<int64_t>(end * i / 4)), i == 4 ? "end small" : "mid small");
  }
  std::string path;
  for (size_t i = 0; i < points.size(); ++i) {
    const double x = kCurveLeft + kCurveWidth * static_cast<double>(i) / static_cast<double>(points.size() - 1);
    path += Cat(path.empty() ? "M" : " L", Px(x), " ", Px(y(points[i].*curve.value)));
  }
  drawing.Path(path, Cat("curve ", curve.color));
  // Invisible columns over the drawing: the title of one says the numbers under the mouse, without a script.
  constexpr size_t kProbes = 122;
  for (size_t i = 0; i < kProbes; ++i) {
    const RatePoint& point = points[(points.size() - 1) * i / (kProbes - 1)];
    const double width = kCurveWidth / kProbes;
    drawing.Rect(kCurveLeft + width * static_cast<double>(i), kCurveTop, width, kCurveHeight, "none probe",
                 Cat("sample ", WithCommas(point.sample), ", step ", WithCommas(StepOfSample(budget, point.sample)),
                     "\nlearning rate ", Short(point.learning_rate), "\nweight decay ", Short(point.weight_decay)));
  }
  return Cat("<h3>", curve.name, "</h3>\n", drawing.Markup());
}

std::string SegmentTable(const Budget& budget) {
  HtmlTable table({"segment", "first sample", "end sample", "from step"});
  for (const Segment& segment : budget.segments) {
    table.Add({Escaped(segment.kind), WithCommas(segment.first_sample), WithCommas(segment.end_sample),
               WithCommas(StepOfSample(budget, segment.first_sample))});
  }
  return table.Markup();
}

}  // namespace

std::string BudgetSection(const Plan& plan) {
  const std::vector<RatePoint> points = RateCurve(plan.budget, 977);  // one for each pixel of the curve's width
  std::string body =
      Tiles(plan.budget) + CurveDrawing(plan.budget, points, {"Learning rate", "m0l", &RatePoint::learning_rate});
  const WeightDecay& decay = plan.budget.weight_decay;
  if (decay.start == decay.end) {
    body += Cat("<p>Weight decay is ", Short(decay.start), " throughout.</p>\n");
  } else {
    body += CurveDrawing(plan.budget, points, {"Weight decay", "m3l", &RatePoint::weight_decay});
  }
  return Section("budget", "Budget", body + SegmentTable(plan.budget));
}

}  // namespace planwright
