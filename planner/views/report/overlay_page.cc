#include "planner/views/report/overlay_page.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include "absl/strings/str_format.h"
#include "planner/base/files/readable.h"
#include "planner/base/paper/markup.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/views/report/page_curve.h"
#include "planner/views/report/run_figures.h"
#include "planner/views/show/quantities.h"

namespace planwright {
namespace {

// Of the drawing of an overlay.
constexpr double kLinesLeft = 84, kLinesWidth = 956, kLinesTop = 12, kLinesHeight = 220;

// Points of a run: consumed samples and a value, ascending.
struct RunLine {
  std::string name, color;
  std::vector<std::pair<double, double>> points;
};

std::string ColorOfRun(size_t run) { return Cat("m", run % 6, "l"); }
std::string NameOfRun(const RunReport& report) { return Printable(report.run_dir); }
std::string ValueText(double value) { return absl::StrFormat("%.5g", value); }

RunLine LineOf(const RunReport& report, size_t run, Spread StepBin::*values, double factor) {
  constexpr size_t kMostPoints = 480;
  RunLine line{NameOfRun(report), ColorOfRun(run), {}};
  const std::vector<StepBin>& bins = report.steps.bins();
  const size_t points = std::min(bins.size(), kMostPoints);
  for (size_t point = 0; point < points; ++point) {
    const size_t first = bins.size() * point / points, end = bins.size() * (point + 1) / points;
    Spread spread;
    for (size_t i = first; i < end; ++i) spread.Add(bins[i].*values);
    if (spread.count == 0) continue;
    const double middle =
        (static_cast<double>(bins[first].last_samples) + static_cast<double>(bins[end - 1].last_samples)) / 2;
    line.points.emplace_back(middle, spread.mean * factor);
  }
  return line;
}

RunLine LineOfSet(const RunReport& report, size_t run, const std::string& set) {
  RunLine line{NameOfRun(report), ColorOfRun(run), {}};
  for (const EvaluationSeries::Point& point : report.evaluations.Curve(set)) {
    if (std::abs(point.loss) < 1e300) line.points.emplace_back(static_cast<double>(point.samples), point.loss);
  }
  return line;
}

// The drawing under its title; empty if no run has a point. `from_zero`: the axis of values begins at 0.
std::string LinesMarkup(const std::string& title, const std::string& unit, const std::vector<RunLine>& lines,
                        bool from_zero) {
  double most_samples = 1, least = 0, most = 0;
  bool any = false;
  for (const RunLine& line : lines) {
    for (const auto& [samples, value] : line.points) {
      most_samples = std::max(most_samples, samples);
      least = any ? std::min(least, value) : value, most = any ? std::max(most, value) : value;
      any = true;
    }
  }
  if (!any) return "";
  const std::vector<double> ticks = AxisTicks(from_zero ? std::min(0.0, least) : least, most);
  const auto x = [&](double samples) { return kLinesLeft + kLinesWidth * samples / most_samples; };
  const auto y = [&](double value) {
    return kLinesTop + kLinesHeight - kLinesHeight * (value - ticks.front()) / (ticks.back() - ticks.front());
  };
  Drawing drawing(kLinesLeft + kLinesWidth + 16, kLinesTop + kLinesHeight + 40, Cat(title, " over samples"));
  for (double tick : ticks) {
    drawing.Line(kLinesLeft, y(tick), kLinesLeft + kLinesWidth, y(tick), "axis");
    drawing.Text(kLinesLeft - 8, y(tick) + 4, ValueText(tick), "end small");
  }
  for (int i = 0; i <= 4; ++i) {
    const double samples = most_samples * i / 4;
    drawing.Text(x(samples), kLinesTop + kLinesHeight + 22,
                 Cat(WithCommas(std::llround(samples)), i == 0 ? " samples" : ""), i == 4 ? "end small" : "mid small");
  }
  for (const RunLine& line : lines) {
    std::string path;
    for (const auto& [samples, value] : line.points)
      Append(path, path.empty() ? "M" : " L", Px(x(samples)), " ", Px(y(value)));
    if (line.points.size() > 1) drawing.Path(path, Cat("curve ", line.color), line.name);
    constexpr size_t kMostDots = 60;
    if (line.points.size() > kMostDots) continue;
    for (const auto& [samples, value] : line.points) {
      drawing.Rect(x(samples) - 2.5, y(value) - 2.5, 5, 5, line.color.substr(0, 2) + "b",
                   Cat(line.name, "\n", WithCommas(std::llround(samples)), " samples, ", ValueText(value)));
    }
  }
  return Cat("<h3>", Escaped(title), unit.empty() ? "" : ", ", Escaped(unit), "</h3>\n", drawing.Markup());
}

// The sets of all runs, in the order in which they come.
std::vector<std::string> SetsOf(const std::vector<RunReport>& reports) {
  std::vector<std::string> sets;
  for (const RunReport& report : reports) {
    for (const std::string& set : report.evaluations.sets()) {
      if (std::find(sets.begin(), sets.end(), set) == sets.end()) sets.push_back(set);
    }
  }
  return sets;
}

// The table of both, with a row for each run. Cells are plain text.
std::vector<std::vector<std::string>> RunRows(const std::vector<RunReport>& reports) {
  const std::vector<std::string> sets = SetsOf(reports);
  std::vector<std::string> header = {"run", "plan", "ranks", "step", "samples", "loss"};
  for (const std::string& set : sets) header.push_back(Cat("least of ", Printable(set)));
  header.insert(header.end(), {"a step", "tokens/s", "goodput", "exit"});
  std::vector<std::vector<std::string>> rows = {std::move(header)};
  for (const RunReport& report : reports) {
    std::vector<std::string> row = {NameOfRun(report), report.plan ? Printable(report.plan->digest.substr(0, 12)) : "",
                                    report.plan ? std::to_string(report.plan->ranks) : ""};
    const bool any = !report.steps.empty();
    row.push_back(any ? WithCommas(report.steps.back().step) : "0");
    row.push_back(any ? WithCommas(report.steps.back().samples) : "0");
    row.push_back(any && report.steps.back().loss ? ValueText(*report.steps.back().loss) : "");
    for (const std::string& set : sets) {
      const auto best = report.evaluations.best().find(set);
      row.push_back(best == report.evaluations.best().end()
                        ? ""
                        : Cat(ValueText(best->second.loss), " of step ", WithCommas(best->second.step)));
    }
    const std::optional<Pace> pace = PaceOf(report);
    const std::optional<TimeUse> use = TimeUseOf(report);
    row.push_back(pace ? DurationText(pace->seconds) : "");
    row.push_back(pace && pace->tokens_per_second ? LargeText(*pace->tokens_per_second) : "");
    row.push_back(use ? absl::StrFormat("%.1f %%", 100 * use->goodput()) : "");
    row.push_back(report.live()           ? "runs"
                  : report.life().outcome ? std::to_string(report.life().outcome->exit_code)
                                          : "no word");
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string OverlayCurves(const std::vector<RunReport>& reports) {
  const auto lines = [&](const std::function<RunLine(const RunReport&, size_t)>& line_of) {
    std::vector<RunLine> all;
    for (size_t i = 0; i < reports.size(); ++i) all.push_back(line_of(reports[i], i));
    return all;
  };
  const auto of_steps = [&](Spread StepBin::*values) {
    return lines([&](const RunReport& report, size_t run) { return LineOf(report, run, values, 1); });
  };
  const bool tokens = std::all_of(reports.begin(), reports.end(), [](const RunReport& report) { return report.plan; });
  std::string text = LinesMarkup("Loss", "", of_steps(&StepBin::loss), false);
  for (const std::string& set : SetsOf(reports)) {
    text += LinesMarkup(Cat("Loss of ", Printable(set)), "",
                        lines([&](const RunReport& report, size_t run) { return LineOfSet(report, run, set); }), false);
  }
  text += LinesMarkup("Throughput", tokens ? "tokens/s" : "samples/s", lines([&](const RunReport& report, size_t run) {
                        const double factor = tokens ? static_cast<double>(report.plan->sequence_length) : 1;
                        return LineOf(report, run, &StepBin::samples_per_second, factor);
                      }),
                      true);
  text += LinesMarkup("Gradient norm", "", of_steps(&StepBin::grad_norm), true);
  text += LinesMarkup("Learning rate", "", of_steps(&StepBin::learning_rate), true);
  if (text.empty()) return "";
  std::string legend;
  for (size_t i = 0; i < reports.size(); ++i) legend += LineChip(ColorOfRun(i), NameOfRun(reports[i]));
  return Section("curves", "Curves", Cat("<div class=\"legend\">", legend, "</div>\n", text));
}

}  // namespace

std::string OverlayText(const std::vector<RunReport>& reports, size_t width) {
  std::vector<std::vector<std::string>> rows = RunRows(reports);
  Table table(rows.front());
  for (size_t i = 1; i < rows.size(); ++i) table.Add(rows[i]);
  std::string text = table.Text("", width);
  for (const RunReport& report : reports) {
    for (const std::string& note : report.notes) Append(text, "note: ", Printable(note), "\n");
  }
  return text;
}

std::string OverlayPage(const std::vector<RunReport>& reports) {
  std::vector<std::vector<std::string>> rows = RunRows(reports);
  for (std::vector<std::string>& row : rows) {
    for (std::string& cell : row) cell = Escaped(cell);
  }
  HtmlTable table(rows.front());
  for (size_t i = 1; i < rows.size(); ++i) table.Add(rows[i]);
  std::string notes;
  for (const RunReport& report : reports) {
    for (const std::string& note : report.notes) Append(notes, "<p>", Escaped(Printable(note)), "</p>\n");
  }
  const std::string title = Cat(reports.size(), " runs");
  return Page(title, Cat("<h1>", title, "</h1>\n", Section("runs", "Runs", table.Markup()), OverlayCurves(reports),
                         notes.empty() ? "" : Section("notes", "What could not be read", notes)));
}

}  // namespace planwright
