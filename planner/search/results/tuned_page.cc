#include <algorithm>

#include "absl/strings/str_format.h"
#include "planner/base/paper/markup.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/search/results/tuned_text.h"
#include "planner/views/report/page_curve.h"
#include "planner/views/show/quantities.h"
#include "planner/views/show/time_words.h"

namespace planwright {
namespace {

constexpr double kLeft = 84, kWidth = 940, kTop = 16, kHeight = 300, kFoot = 44, kDot = 9;
constexpr size_t kMostDots = 500;

std::string Safe(const std::string& text) { return Escaped(Printable(text)); }
std::string Number(double value) { return absl::StrFormat("%.5g", value); }

// Layouts by their memory and the time of a step.
class FrontierDrawing {
 public:
  explicit FrontierDrawing(const Found& found)
      : found_(found), drawing_(kLeft + kWidth + 36, kTop + kHeight + kFoot, "memory and time of a step of layouts") {
    double least_time = 0, most_time = 0, least = 0, most = 0;
    bool first = true;
    const auto take = [&](const TunedLayout& layout) {
      const double memory = Gigabytes(layout);
      least_time = first ? layout.seconds : std::min(least_time, layout.seconds);
      most_time = std::max(most_time, layout.seconds);
      least = first ? memory : std::min(least, memory), most = std::max(most, memory), first = false;
    };
    std::for_each(found.result.best.begin(), found.result.best.end(), take);
    std::for_each(found.result.frontier.begin(), found.result.frontier.end(), take);
    if (found.result.given) take(*found.result.given);
    // A point in the middle of its axis, if there is no other.
    if (most_time <= least_time) least_time *= 0.9, most_time *= 1.1;
    if (most <= least) least *= 0.9, most *= 1.1;
    times_ = AxisTicks(least_time, most_time), memories_ = AxisTicks(least, most);
  }

  std::string Markup() {
    for (double tick : times_) {
      drawing_.Line(kLeft, Y(tick), kLeft + kWidth, Y(tick), "axis");
      drawing_.Text(kLeft - 8, Y(tick) + 4, StepText(found_, tick), "end small");
    }
    for (double tick : memories_) drawing_.Text(X(tick), kTop + kHeight + 18, Cat(Number(tick), " GB"), "mid small");
    drawing_.Text(kLeft + kWidth / 2, kTop + kHeight + 36, "memory of the fullest rank", "mid small soft");
    DrawStairs();
    for (size_t i = 0; i < std::min(found_.result.frontier.size(), kMostDots); ++i)
      Dot(found_.result.frontier[i], "m0b", "on the frontier");
    for (size_t i = found_.result.best.size(); i-- > 0;) Dot(found_.result.best[i], "m1b", NameOfLayout(found_, i));
    if (found_.result.given) Dot(*found_.result.given, "m2b", "given");
    return drawing_.Markup();
  }

 private:
  static double Gigabytes(const TunedLayout& layout) { return static_cast<double>(layout.memory) / 1e9; }
  double X(double memory) const {
    return kLeft + kWidth * (memory - memories_.front()) / (memories_.back() - memories_.front());
  }
  double Y(double time) const {
    return kTop + kHeight - kHeight * (time - times_.front()) / (times_.back() - times_.front());
  }
  void Dot(const TunedLayout& layout, std::string_view color, const std::string& what) {
    drawing_.Rect(
        X(Gigabytes(layout)) - kDot / 2, Y(layout.seconds) - kDot / 2, kDot, kDot, Cat("op ", color),
        Printable(Cat(what, "\n", StepText(found_, layout.seconds), ", ", MemoryText(layout), "\n", layout.line)));
  }
  // With less memory than the next layout needs, nothing is faster than the one before it.
  void DrawStairs() {
    std::vector<const TunedLayout*> stairs;
    for (const TunedLayout& layout : found_.result.frontier) stairs.push_back(&layout);
    std::sort(stairs.begin(), stairs.end(),
              [](const TunedLayout* a, const TunedLayout* b) { return a->memory < b->memory; });
    std::string path;
    for (size_t i = 0; i < stairs.size(); ++i) {
      const std::string x = Px(X(Gigabytes(*stairs[i]))), y = Px(Y(stairs[i]->seconds));
      path += i == 0 ? Cat("M", x, " ", y) : Cat("H", x, "V", y);
    }
    if (stairs.size() > 1) drawing_.Path(path, "curve m0l");
  }

  const Found& found_;
  Drawing drawing_;
  std::vector<double> times_, memories_;
};

// Layouts in words stand below their figures: in one table they would be too wide.
std::string LayoutsTables(const Found& found) {
  HtmlTable figures({"", "step", found.cpus() ? "tok/s/rank" : "tok/s/GPU", "memory", "who waits", "what binds"});
  HtmlTable words({"", "layout"});
  const auto add = [&](const std::string& name, const TunedLayout& layout) {
    figures.Add({Safe(name), StepText(found, layout.seconds), RateText(layout), MemoryText(layout),
                 Safe(WaitsText(layout)), Safe(BoundText(layout))});
    words.Add({Safe(name), Safe(LayoutText(layout))});
  };
  if (found.result.given) add("given", *found.result.given);
  for (size_t i = 0; i < found.result.best.size(); ++i) add(NameOfLayout(found, i), found.result.best[i]);
  return Cat(figures.Markup(), "<h3>Layouts</h3>\n", words.Markup());
}

std::string ChangesList(const TunedLayout& layout) {
  if (layout.changes.empty()) return "";
  std::string text = "<p class=\"soft\">The first layout changes:</p>\n<p>";
  for (const std::string& change : layout.changes)
    Append(text, &change == &layout.changes.front() ? "" : "<br/>", "<code>", Safe(change), "</code>");
  return text + "</p>\n";
}

std::string FoundSection(const Found& found) {
  const std::string id = Cat("gpus", found.result.gpus);
  const std::string title = Printable(ClusterText(found));
  const TunedLayout* chosen = found.chosen();
  if (!chosen) {
    std::string text = Cat("<p>", Safe(found.result.problem), "</p>\n");
    for (const std::string& remark : Remarks(found)) Append(text, "<p class=\"soft\">", Safe(remark), "</p>\n");
    for (const Diagnostic& problem : found.problems)
      Append(text, "<p>", Safe(Cat(KindNumber(problem.kind), ": ", problem.message)), "</p>\n");
    return Section(id, title, text);
  }
  std::string text = "<div class=\"tiles\">\n";
  text += Tile(StepText(found, chosen->seconds), "a step, predicted");
  if (found.result.given && chosen->seconds > 0 && found.result.given->seconds > 0)
    text +=
        Tile(absl::StrFormat("%.2f x", found.result.given->seconds / chosen->seconds), "as fast as the given layout");
  if (found.result.seconds) text += Tile(RateText(*chosen), found.cpus() ? "tok/s/rank" : "tok/s/GPU");
  text += Tile(MemoryText(*chosen), "of the fullest rank");
  if (chosen->speed)
    text += Tile(HoursText(chosen->speed->rank_hours),
                 found.cpus() ? "rank-hours of the budget" : "GPU-hours of the budget");
  text += Tile(GapFigure(found), "gap to the optimum, at most");
  Append(text, "</div>\n", LayoutsTables(found), "<h3>Time and memory</h3>\n",
         "<div class=\"legend\"><span><i class=\"chip m2b\"></i>given</span><span><i class=\"chip m1b\"></i>the "
         "fastest</span><span><i class=\"chip m0b\"></i>frontier: none is both faster and smaller</span></div>\n",
         FrontierDrawing(found).Markup(), ChangesList(*chosen));
  for (const std::string& remark : Remarks(found)) Append(text, "<p class=\"soft\">", Safe(remark), "</p>\n");
  return Section(id, title, text);
}

std::string ScalingSection(const std::vector<Found>& found) {
  const bool cpus = found.front().cpus();
  HtmlTable table({cpus ? "ranks" : "GPUs", "step", cpus ? "tok/s/rank" : "tok/s/GPU", "memory", "hours",
                   cpus ? "rank-hours" : "GPU-hours", "gap, at most", "what binds", "layout"});
  for (const Found& one : found) {
    const TunedLayout* layout = one.chosen();
    table.Add({WithCommas(one.result.gpus), layout ? StepText(one, layout->seconds) : "",
               layout ? RateText(*layout) : "", layout ? MemoryText(*layout) : "",
               layout && layout->speed ? HoursText(layout->speed->hours) : "",
               layout && layout->speed ? HoursText(layout->speed->rank_hours) : "", layout ? GapFigure(one) : "",
               layout ? Safe(BoundText(*layout)) : "", Safe(layout ? layout->line : one.result.problem)});
  }
  return Section("scaling", "Scaling", table.Markup());
}

}  // namespace

std::string FoundPage(const std::string& title, const std::vector<Found>& found) {
  std::string body =
      Cat("<h1>", Safe(title), "</h1>\n<p class=\"soft\">Layouts, by the predicted time of a step</p>\n");
  if (found.size() > 1) body += ScalingSection(found);
  for (const Found& one : found) body += FoundSection(one);
  return Page(Cat(Printable(title), " - layouts"), body);
}

}  // namespace planwright
