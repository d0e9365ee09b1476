#include "planner/views/report/evaluation_text.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/views/report/run_figures.h"
#include "planner/views/show/quantities.h"

namespace planwright {
namespace {

constexpr char kFormat[] = "%.6g";

}  // namespace

std::string EvaluationText(const RunReport& report) {
  const EvaluationSeries& evaluations = report.evaluations;
  if (evaluations.empty()) return "";
  const EvaluationRecord& newest = evaluations.newest();
  std::vector<std::string> sets;
  for (const EvaluatedSet& set : newest.sets) {
    std::string text = Cat(Printable(set.name), " ", LossText(set.all, kFormat));
    if (set.sources.size() > 1) {
      std::string sources;
      for (const auto& [name, mean] : set.sources)
        Append(sources, sources.empty() ? "" : ", ", Printable(name), " ", LossText(mean, kFormat));
      Append(text, " (", sources, ")");
    }
    const auto best = evaluations.best().find(set.name);
    if (best != evaluations.best().end() && best->second.step != newest.step)
      Append(text, ", least ", absl::StrFormat(kFormat, best->second.loss), " of step ", WithCommas(best->second.step));
    sets.push_back(std::move(text));
  }
  std::string text = Cat("evaluation of step ", WithCommas(newest.step), ": ");
  for (size_t i = 0; i < sets.size(); ++i) Append(text, i == 0 ? "" : "; ", sets[i]);
  return text + "\n";
}

std::string SourcesText(const RunReport& report) {
  std::string text;
  for (size_t i = 0; i < report.steps.sources().size(); ++i) {
    const std::optional<double> last = LastOfSource(report.steps, i);
    if (last)
      Append(text, text.empty() ? "" : ", ", Printable(report.steps.sources()[i]), " ",
             absl::StrFormat(kFormat, *last));
  }
  const auto steps = static_cast<int64_t>(report.steps.last().size());
  return text.empty() ? "" : Cat("loss by source (mean of ", Counted(steps, "step"), "): ", text, "\n");
}

std::vector<double> EvaluationColumns(const RunReport& report, const std::string& set, size_t count) {
  const std::vector<EvaluationSeries::Point> losses = report.evaluations.Curve(set);
  if (losses.size() < 2 || count < 2) return {};
  std::vector<double> columns;
  const auto first = static_cast<double>(report.steps.front().step),
             last = static_cast<double>(report.steps.back().step);
  for (size_t column = 0, next = 0; column < count; ++column) {
    const double step = first + (last - first) * static_cast<double>(column) / static_cast<double>(count - 1);
    while (next + 1 < losses.size() && static_cast<double>(losses[next + 1].step) <= step) ++next;
    columns.push_back(losses[next].loss);
  }
  return columns;
}

}  // namespace planwright
