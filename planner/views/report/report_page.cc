#include "planner/views/report/report_page.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_format.h"
#include "planner/base/files/exit_status.h"
#include "planner/base/files/readable.h"
#include "planner/base/paper/markup.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/views/report/page_curve.h"
#include "planner/views/report/report_text.h"
#include "planner/views/report/run_figures.h"
#include "planner/views/show/page/page.h"
#include "planner/views/show/quantities.h"

namespace planwright {
namespace {

constexpr size_t kMostPageRows = 1000;  // of a table: the newest

std::string Safe(const std::string& text) { return Escaped(Printable(text)); }

std::string Header(const RunReport& report) {
  std::string text = Cat("<h1>", Safe(report.plan ? report.plan->name : report.run_dir), "</h1>\n<p class=\"soft\">");
  if (report.plan) {
    Append(text, Counted(report.plan->ranks, "rank"), " · plan <code>", Safe(report.plan->digest.substr(0, 12)),
           "</code> · ");
  }
  return Cat(text, "<code>", Safe(report.run_dir), "</code> · as of ", Escaped(ClockText(report.now)), "</p>\n");
}

std::string Tiles(const RunReport& report) {
  if (report.steps.empty()) return "<p>No step is done.</p>\n";
  const StepPoint& last = report.steps.back();
  std::string text = "<div class=\"tiles\">\n";
  text += Tile(WithCommas(last.step), report.plan ? Cat("of ", WithCommas(report.plan->steps), " steps") : "steps");
  text += Tile(WithCommas(last.samples), "samples");
  if (report.plan) {
    const double tokens = static_cast<double>(last.samples) * static_cast<double>(report.plan->sequence_length);
    text += Tile(LargeText(tokens), "tokens");
  }
  if (last.loss) text += Tile(absl::StrFormat("%.5g", *last.loss), "loss");
  if (!report.evaluations.empty()) {
    for (const EvaluatedSet& set : report.evaluations.newest().sets) {
      if (set.all.tokens > 0) text += Tile(LossText(set.all, "%.5g"), Cat("loss of ", Safe(set.name)));
    }
  }
  if (const std::optional<Pace> pace = PaceOf(report)) {
    text += Tile(DurationText(pace->seconds), Cat("a step, median of ", pace->steps));
    if (report.plan && report.plan->predicted_step > 0)
      text += Tile(DurationText(report.plan->predicted_step), "a step, as predicted");
    if (pace->tokens_per_second) text += Tile(LargeText(*pace->tokens_per_second), "tokens a second");
  }
  if (const std::optional<TimeUse> use = TimeUseOf(report))
    text += Tile(absl::StrFormat("%.1f %%", 100 * use->goodput()), "goodput");
  if (const std::optional<double> waited = report.steps.data_wait(); waited && report.steps.seconds() > 0)
    text += Tile(absl::StrFormat("%.1f %%", 100 * *waited / report.steps.seconds()), "of steps waited for data");
  if (const int64_t skipped = report.steps.skipped(); skipped > 0) text += Tile(WithCommas(skipped), "steps skipped");
  if (const double waited = WaitedForDisk(report); waited >= 0.001)
    text += Tile(DurationText(waited), "waited for disk");
  return text + "</div>\n";
}

std::string Summary(const RunReport& report) {
  std::string text = Cat("<p>", Escaped(StateLine(report)), "</p>\n");
  const std::vector<std::string> failure = FailureLines(report);
  if (!failure.empty()) {
    text += "<p>";
    for (const std::string& line : failure) Append(text, "<code>", Escaped(line), "</code><br/>");
    text += "</p>\n";
  }
  return Section("summary", "Summary", text + Tiles(report));
}

PageCurve CurveOf(const RunReport& report, const char* title, const char* color, Spread StepBin::*values,
                  std::optional<double> StepPoint::*member, bool from_zero) {
  PageCurve curve{.title = title, .unit = "", .color = color, .values = values, .again = {}, .from_zero = from_zero};
  for (const StepPoint& point : report.again.points()) {
    const std::optional<int64_t> index = report.steps.FindSamples(point.samples);
    if (index && point.*member) curve.again.emplace_back(*index, *(point.*member));
  }
  return curve;
}

std::string ColorOfLine(size_t line) { return Cat("m", line % 6, "l"); }

// The evaluation sets, on the axis of the steps. An evaluation stands at the last step before it.
std::vector<PageLine> EvaluationLines(const RunReport& report) {
  constexpr size_t kMostLines = 12;
  std::vector<PageLine> lines;
  for (const std::string& set : report.evaluations.sets()) {
    PageLine line{set, ColorOfLine(lines.size() + 1), {}};
    for (const EvaluationSeries::Point& point : report.evaluations.Curve(set)) {
      const std::optional<int64_t> at = point.step == 0 ? 0 : report.steps.IndexOfStep(point.step);
      if (at && std::abs(point.loss) < 1e300) line.points.emplace_back(static_cast<double>(*at), point.loss);
    }
    if (!line.points.empty() && lines.size() < kMostLines) lines.push_back(std::move(line));
  }
  return lines;
}

// Means of neighbouring steps, as many as a screen has columns.
std::vector<PageLine> SourceLines(const StepSeries& steps) {
  constexpr size_t kMostPoints = 480;
  std::vector<PageLine> lines;
  const std::vector<StepBin>& bins = steps.bins();
  for (size_t source = 0; source < steps.sources().size(); ++source) {
    PageLine line{steps.sources()[source], ColorOfLine(source + 1), {}};
    const size_t points = std::min(bins.size(), kMostPoints);
    for (size_t point = 0; point < points; ++point) {
      const size_t first = bins.size() * point / points, end = bins.size() * (point + 1) / points;
      Spread spread;
      for (size_t i = first; i < end; ++i) {
        if (source < bins[i].source_losses.size()) spread.Add(bins[i].source_losses[source]);
      }
      if (spread.count > 0)
        line.points.emplace_back(static_cast<double>(bins[first].first + bins[end - 1].first) / 2, spread.mean);
    }
    if (!line.points.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

// The loss with the sets beside it, and the loss of each source where there are several.
std::string LossCurves(const RunReport& report) {
  PageCurve loss = CurveOf(report, "Loss", "m0l", &StepBin::loss, &StepPoint::loss, false);
  loss.name = "training";
  loss.more = EvaluationLines(report);
  std::string text = CurveMarkup(report, loss);
  PageCurve sources{.title = "Loss by source", .color = "m0l", .values = &StepBin::loss, .name = "all"};
  sources.more = SourceLines(report.steps);
  return sources.more.size() < 2 ? text : text + CurveMarkup(report, sources);
}

std::string Curves(const RunReport& report) {
  const PageCurve throughput{.title = "Throughput",
                             .unit = report.plan ? "tokens/s" : "samples/s",
                             .color = "m1l",
                             .values = &StepBin::samples_per_second,
                             .factor = report.plan ? static_cast<double>(report.plan->sequence_length) : 1,
                             .again = {},
                             .from_zero = true};
  const std::string curves =
      LossCurves(report) + CurveMarkup(report, throughput) +
      CurveMarkup(report, CurveOf(report, "Gradient norm", "m3l", &StepBin::grad_norm, &StepPoint::grad_norm, true)) +
      CurveMarkup(report,
                  CurveOf(report, "Learning rate", "m2l", &StepBin::learning_rate, &StepPoint::learning_rate, true));
  if (curves.empty()) return "";
  const std::string legend =
      "<div class=\"legend\"><span><span class=\"chip limit\"></span>a life begins</span><span><span class=\"chip "
      "m1b\"></span>checkpoint</span><span><span class=\"chip m4\"></span>steps that were lost and done "
      "again</span><span><span class=\"chip m4b\"></span>skipped "
      "step</span></div>\n";
  return Section("curves", "Curves", legend + curves);
}

struct TimePart {
  const char* name;
  const char* color;
  double seconds;
};

std::string Times(const RunReport& report) {
  const std::optional<TimeUse> use = TimeUseOf(report);
  if (!use || use->all <= 0) return "";
  const TimePart parts[] = {{"steps that count", "m1b", use->counted},
                            {"evaluation", "m5b", use->evaluation},
                            {"steps lost and done again", "m4b", use->again},
                            {"start, loading and end", "m2b", use->other},
                            {"between lives", "band", use->between}};
  double sum = 0;
  for (const TimePart& part : parts) sum += part.seconds;
  constexpr double kWidth = 1060;
  Drawing drawing(kWidth, 34, "where the time went");
  HtmlTable table({"", "part", "time"});
  double x = 0;
  for (const TimePart& part : parts) {
    if (part.name == parts[1].name && part.seconds == 0) continue;  // a run without evaluations
    const std::string share = absl::StrFormat("%.1f %%", 100 * part.seconds / sum);
    const double width = kWidth * part.seconds / sum;
    drawing.Box({x, 0, width, 34}, "op", part.color, {Cat(part.name, " ", share), share},
                Cat(part.name, ": ", DurationText(part.seconds)));
    x += width;
    table.Add({Cat("<span class=\"chip ", part.color, "\"></span>", part.name), share, DurationText(part.seconds)});
  }
  return Section("time", "Time since the first launch", drawing.Markup() + table.Markup());
}

const char* ColorOf(const RunReport& report, const RunLife& life) {
  if (!life.outcome) return report.live() && life.number == report.life().number ? "m0b" : "m4b";
  if (life.outcome->exit_code == kExitSuccess) return "m1b";
  return life.outcome->exit_code == kExitPreempted ? "m2b" : "m4b";
}

// Each life as a box from its begin to its end.
std::string LivesDrawing(const RunReport& report) {
  const std::optional<TimeUse> use = TimeUseOf(report);
  if (!use || use->all <= 0) return "";
  constexpr double kWidth = 1060;
  std::optional<absl::Time> begin;
  for (const RunLife& life : report.lives) {
    if (life.begin && (!begin || *life.begin < *begin)) begin = life.begin;
  }
  Drawing drawing(kWidth, 34, "lives over time");
  drawing.Rect(0, 0, kWidth, 34, "band");
  const size_t first = report.lives.size() - std::min(report.lives.size(), kMostPageRows);
  for (size_t i = first; i < report.lives.size(); ++i) {
    const RunLife& life = report.lives[i];
    const bool goes_on = report.live() && !life.outcome && i + 1 == report.lives.size();
    const std::optional<absl::Time> end = goes_on ? report.now : life.end;
    if (!life.begin || !end) continue;
    const auto x = [&](absl::Time time) {
      return kWidth * std::clamp(absl::ToDoubleSeconds(time - *begin) / use->all, 0.0, 1.0);
    };
    const std::string cause = EndText(report, life);
    const double left = std::min(x(*life.begin), kWidth - 1);  // a short life is seen, too
    drawing.Box({left, 0, std::max(1.0, x(*end) - left), 34}, "op", ColorOf(report, life),
                {Cat("life ", life.number), std::to_string(life.number)},
                Cat("life ", life.number, ", ", DurationText(absl::ToDoubleSeconds(*end - *life.begin)),
                    cause.empty() ? "" : ": ", Printable(cause)));
  }
  return drawing.Markup();
}

std::string Lives(const RunReport& report) {
  HtmlTable table({"life", "began", "took", "from step", "steps", "exit", "how it ended", "rank", "host", "instruction",
                   "recipe line"});
  const size_t first = report.lives.size() - std::min(report.lives.size(), kMostPageRows);
  for (size_t i = first; i < report.lives.size(); ++i) {
    const RunLife& life = report.lives[i];
    const Failure end = life.outcome && life.outcome->failure ? *life.outcome->failure : Failure{};
    table.Add({std::to_string(life.number), life.begin ? ClockText(*life.begin) : "",
               life.begin && life.end ? DurationText(absl::ToDoubleSeconds(*life.end - *life.begin)) : "",
               life.started ? std::to_string(life.from_step) : "",
               life.last_step > 0 ? Cat(life.first_step, "-", life.last_step) : "none",
               life.outcome ? std::to_string(life.outcome->exit_code) : "", Safe(EndText(report, life)),
               end.rank >= 0 ? std::to_string(end.rank) : "", Safe(end.host), Safe(Shortened(end.instruction, 120)),
               Safe(end.recipe_line)});
  }
  return Section("lives", "Lives", LivesDrawing(report) + table.Markup());
}

std::string Checkpoints(const RunReport& report) {
  if (report.checkpoints.empty()) return "";
  HtmlTable table({"step", "life", "bytes", "copied", "written", "training waited", "published", "state"});
  const size_t first = report.checkpoints.size() - std::min(report.checkpoints.size(), kMostPageRows);
  for (size_t i = report.checkpoints.size(); i-- > first;) {
    const ReportedCheckpoint& one = report.checkpoints[i];
    const auto seconds = [&](double CheckpointCost::*part) { return one.cost ? DurationText((*one.cost).*part) : ""; };
    table.Add({WithCommas(one.step), std::to_string(one.life), one.bytes ? BytesText(*one.bytes) : "",
               seconds(&CheckpointCost::copied), seconds(&CheckpointCost::written), WaitedText(one),
               one.published ? ClockText(*one.published) : "", Safe(one.state)});
  }
  return Section("checkpoints", "Checkpoints", table.Markup());
}

std::string Notes(const RunReport& report) {
  if (report.notes.empty()) return "";
  std::string text;
  for (const std::string& note : report.notes) Append(text, "<p>", Safe(note), "</p>\n");
  return Section("notes", "What could not be read", text);
}

}  // namespace

std::string ReportPage(const RunReport& report) {
  return Page(Cat(report.plan ? Printable(report.plan->name) : Printable(report.run_dir), " - run"),
              Cat(Header(report), Summary(report), Curves(report), Times(report), Lives(report), Checkpoints(report),
                  Notes(report)));
}

}  // namespace planwright
