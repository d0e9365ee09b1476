#include <algorithm>
#include <cmath>
#include <cstdio>

#include "planner/base/paper/markup.h"
#include "planner/base/text/text.h"
#include "planner/plan/ranks_text.h"
#include "planner/views/show/page/page.h"
#include "planner/views/show/quantities.h"

namespace planwright {
namespace {

constexpr double kMemoryPitch = 58;

// From bytes to pixels. All roles share one scale, so that bars can be compared.
struct BarScale {
  MemoryUnit unit;
  double limit = 0;     // bytes of the device; 0: not known
  double whole = 1;     // bytes of a bar's full width
  bool varies = false;  // some role's worst case is larger than what is expected
  double at(double bytes) const { return std::min(bytes / whole, 1.0) * kDrawingWidth; }
  double at(int64_t bytes) const { return at(static_cast<double>(bytes)); }
};

// A worst case may be many times the device. It is cut at 1.6 times the largest of the planned bars and the
// device, so that the rest stays readable.
BarScale BarScaleOf(const std::vector<RoleEstimate>& estimates) {
  BarScale scale{MemoryUnitOf(estimates)};
  double planned = 1, worst = 1;
  for (const RoleEstimate& estimate : estimates) {
    scale.limit = std::max(scale.limit, static_cast<double>(estimate.limit));
    planned = std::max({planned, static_cast<double>(estimate.planned.total()), scale.limit});
    worst = std::max(worst, static_cast<double>(estimate.worst.total()));
    scale.varies |= estimate.worst.total() > estimate.planned.total();
  }
  scale.whole = std::max(planned, std::min(worst, 1.6 * planned)) * 1.01;
  return scale;
}

std::string CategoryColor(size_t category) { return "c" + std::to_string(category); }

// Above a bar: the role's name and ranks at the left, its totals at the right, in red if the worst case does not fit.
void DrawHeading(const RoleEstimate& estimate, const BarScale& scale, double y, Drawing& drawing) {
  const std::string name = Shortened(estimate.role->name, 48);
  drawing.Text(0, y, name, "strong");
  const std::vector<int> ranks = Expand(estimate.role->ranks);
  drawing.Text(1.15 * LabelWidth(name) + 14, y, Cat(ranks.size() == 1 ? "rank " : "ranks ", RanksText(ranks, 3)),
               "soft");
  const int64_t planned = estimate.planned.total(), worst = estimate.worst.total();
  std::string totals = Cat(scale.unit.Text(planned), " expected");
  if (worst != planned) Append(totals, ", ", scale.unit.Text(worst), " at worst");
  const bool beyond = estimate.limit > 0 && worst > estimate.limit;
  if (beyond) totals += planned > estimate.limit ? ": does not fit" : ", which does not fit";
  drawing.Text(kDrawingWidth, y, totals, beyond ? "end over" : "end");
}

void DrawBar(const RoleEstimate& estimate, const BarScale& scale, double y, Drawing& drawing) {
  drawing.Rect(0, y, kDrawingWidth, kBarHeight, "band");
  int64_t reached = 0;
  for (size_t i = 0; i < kMemoryCategories.size(); ++i) {
    const int64_t bytes = estimate.planned.*kMemoryCategories[i].bytes;
    const double x = scale.at(reached), width = scale.at(reached += bytes) - x;
    if (width < 0.3) continue;  // would not be seen
    const std::string number = scale.unit.Text(bytes), both = Cat(kMemoryCategories[i].name, " ", number);
    drawing.Box({x, y, width, kBarHeight}, "part", CategoryColor(i), {both, number}, both);
  }
  const double planned = scale.at(reached), worst = scale.at(estimate.worst.total());
  if (worst - planned > 2) {
    std::string title = Cat("at worst ", scale.unit.Text(estimate.worst.total()));
    for (const MemoryCategory& category : kMemoryCategories)
      Append(title, "\n", category.name, " ", scale.unit.Text(estimate.worst.*category.bytes));
    drawing.Rect(planned + 1, y + 1, worst - planned - 2, kBarHeight - 2, "worst", title);
  }
  if (scale.limit > 0) drawing.Line(scale.at(scale.limit), y - 2, scale.at(scale.limit), y + kBarHeight + 2, "limit");
}

// Round numbers of bytes below the bars: steps of 1, 2 or 5 times a power of ten, 5 to 10 of them.
void DrawAxis(const BarScale& scale, double y, Drawing& drawing) {
  const double whole = scale.whole / scale.unit.bytes;
  double step = std::pow(10, std::floor(std::log10(whole)));
  for (const double finer : {2.0, 2.5, 2.0}) {
    if (whole / step < 5) step /= finer;
  }
  for (int i = 0; i * step <= whole; ++i) {
    char label[32];
    std::snprintf(label, sizeof label, "%g %s", i * step, scale.unit.name);
    const double x = scale.at(i * step * scale.unit.bytes);
    drawing.Line(x, y, x, y + 5, "axis");
    drawing.Text(x, y + 17, label,
                 i == 0                   ? "soft small"
                 : x > kDrawingWidth - 24 ? "soft small end"
                                          : "soft small mid");
  }
}

// The colors, and what the dashed box and the dashed line mean where they are drawn.
std::string Legend(const BarScale& scale, const std::string& gpu) {
  std::string text = "<p class=\"legend\">";
  for (size_t i = 0; i < kMemoryCategories.size(); ++i) {
    text += Cat("<span><span class=\"chip ", CategoryColor(i), "\"></span>", kMemoryCategories[i].name, "</span> ");
  }
  if (scale.varies) text += "<span><span class=\"chip worst\"></span>up to the worst case</span>";
  if (scale.limit > 0) {
    text += Cat(" <span><span class=\"chip limit\"></span>", Escaped(gpu), ", ",
                scale.unit.Text(static_cast<int64_t>(scale.limit)), "</span>");
  }
  return text + "</p>\n";
}

// All numbers of the bars, folded away.
std::string NumbersTable(const std::vector<RoleEstimate>& estimates, const MemoryUnit& unit) {
  std::vector<std::string> header = {"role"};
  for (const MemoryCategory& category : kMemoryCategories) header.push_back(category.name);
  for (const char* more : {"in all", "worst case", "fullest at"}) header.push_back(more);
  HtmlTable table(std::move(header));
  for (const RoleEstimate& estimate : estimates) {
    std::vector<std::string> row = {Escaped(estimate.role->name)};
    for (const MemoryCategory& category : kMemoryCategories) row.push_back(unit.Text(estimate.planned.*category.bytes));
    for (int64_t total : {estimate.planned.total(), estimate.worst.total()}) row.push_back(unit.Text(total));
    row.push_back(Escaped(estimate.fullest));
    table.Add(std::move(row));
  }
  return Cat("<details><summary>the numbers</summary>\n", table.Markup(), "</details>\n");
}

}  // namespace

std::string MemorySection(const Plan& plan) {
  const std::vector<RoleEstimate> estimates = EstimateMemory(plan);
  if (estimates.empty()) return Section("memory", "Memory", "<p>No rank has a program.</p>\n");
  const BarScale scale = BarScaleOf(estimates);
  const double bottom = kMemoryPitch * static_cast<double>(estimates.size()) - 8;
  Drawing drawing(kDrawingWidth, bottom + 22, "memory of each role's ranks by category");
  for (size_t i = 0; i < estimates.size(); ++i) {
    const double y = kMemoryPitch * static_cast<double>(i);
    drawing.Open("memory", "", "");
    DrawHeading(estimates[i], scale, y + 13, drawing);
    DrawBar(estimates[i], scale, y + 21, drawing);
    drawing.Close();
  }
  DrawAxis(scale, bottom, drawing);
  std::string body = "<p class=\"soft\">Of one rank of each role, at the fullest moment of a step";
  body += scale.varies ? "; at worst, every run-time size is at its maximum." : ".";
  if (scale.limit == 0) body += " No limit is known: cluster.gpu is none.";
  return Section(
      "memory", "Memory",
      body + "</p>\n" + Legend(scale, plan.cluster.gpu) + drawing.Markup() + NumbersTable(estimates, scale.unit));
}

}  // namespace planwright
