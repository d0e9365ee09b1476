#include <algorithm>
#include <cstdio>

#include "planner/diagnostics/text.h"
#include "planner/show/page/markup.h"
#include "planner/show/page/page.h"
#include "planner/show/table.h"
#include "planner/show/timeline.h"

namespace planwright {
namespace {

constexpr int kMostSlots = 400;

std::string Percent(int part, int whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f %%", whole > 0 ? 100.0 * part / whole : 0.0);
  return text;
}

void DrawRow(const Plan& plan, const TimelineRow& row, double left, double top, double slot, int shown, Drawing& drawing) {
  const std::string color = ModuleColor(plan, row.module);
  drawing.Rect(left, top, slot * shown, 24, "band");
  for (const TimelineOp& op : row.ops) {
    if (op.start < 0 || op.start >= shown) continue;
    const double x = left + op.start * slot;
    drawing.Open("op", "", Cat(row.module, " stage ", row.stage, ": ", op.backward ? "backward" : "forward", " of microbatch ", op.microbatch,
                               ", slot ", op.start));
    drawing.Rect(x, top, slot - 1, 24, op.backward ? color + "b" : color);
    if (slot >= 22 || OpText(op).size() <= 2) drawing.Text(x + (slot - 1) / 2, top + 16, OpText(op), "mid small");
    drawing.Close();
  }
}

}  // namespace

std::string ScheduleSection(const Plan& plan) {
  const Timeline timeline = TimelineOf(plan);
  const int shown = std::min(timeline.slots, kMostSlots);
  size_t longest = 0;
  for (const TimelineRow& row : timeline.rows) longest = std::max(longest, row.module.size() + 4);
  const double left = 8.0 * static_cast<double>(longest), slot = std::clamp((1070 - left) / std::max(1, shown), 18.0, 40.0), pitch = 29;
  Drawing drawing(left + slot * shown, pitch * static_cast<double>(timeline.rows.size()) + 20, "pipeline schedule");
  for (size_t i = 0; i < timeline.rows.size(); ++i) {
    const TimelineRow& row = timeline.rows[i];
    drawing.Text(0, pitch * static_cast<double>(i) + 16, Cat(row.module, ".s", row.stage), "");
    DrawRow(plan, row, left, pitch * static_cast<double>(i), slot, shown, drawing);
  }
  const int every = slot >= 30 ? 1 : 5;
  for (int at = 0; at < shown; at += every) {
    drawing.Text(left + at * slot + (slot - 1) / 2, pitch * static_cast<double>(timeline.rows.size()) + 12, std::to_string(at), "soft small mid");
  }
  std::string body = "<p class=\"soft\">F and B are the forward and backward of a microbatch (the backward stronger), drawn as if all took the same "
                     "time; what is left empty is a bubble.</p>\n" + drawing.Markup();
  if (shown < timeline.slots) body += Cat("<p class=\"soft\">The first ", shown, " of ", WithCommas(timeline.slots), " slots.</p>\n");
  HtmlTable table({"stage", "ranks", "warmup", "microbatches", "bubbles"});
  for (const TimelineRow& row : timeline.rows) {
    table.Add({Cat(Escaped(row.module), ".s", row.stage), Cat(row.ranks.first, "-", row.ranks.first + row.ranks.count - 1),
                      std::to_string(row.warmup), WithCommas(static_cast<int64_t>(row.ops.size() / 2)), Percent(timeline.slots - row.busy, timeline.slots)});
  }
  return Section("schedule", "Schedule", body + table.Markup());
}

}  // namespace planwright
