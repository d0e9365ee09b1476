#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "planner/base/paper/markup.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/text.h"
#include "planner/plan/ranks_text.h"
#include "planner/predict/estimate/step_time.h"
#include "planner/views/show/page/page.h"
#include "planner/views/show/quantities.h"
#include "planner/views/show/timeline.h"

namespace planwright {
namespace {

constexpr int kMostSlots = 400;        // of the chart of equal slots; the first ones show the pattern
constexpr size_t kMostActions = 2000;  // of a row of the time chart; of more, only what has a pixel of its own
constexpr double kSchedulePitch = 29;

std::string StageName(const std::string& module, int stage) { return Cat(Shortened(module, 24), ".s", stage); }

std::string Percent(double part, double whole) { return PercentOf(part, whole, 0); }

// The stages' names, a drawing of their own: it stays in place when the bars scroll.
Drawing StageNames(const Timeline& timeline, double height) {
  double width = 0;
  for (const TimelineRow& row : timeline.rows)
    width = std::max(width, 1.15 * LabelWidth(StageName(row.module, row.stage)) + 8);
  Drawing names(width, height, "stages");
  for (size_t i = 0; i < timeline.rows.size(); ++i) {
    names.Text(0, kSchedulePitch * static_cast<double>(i) + 16,
               StageName(timeline.rows[i].module, timeline.rows[i].stage), "");
  }
  return names;
}

// Names and bars side by side; only the bars scroll.
std::string ScrollingChart(const Drawing& names, const Drawing& bars) {
  return Cat("<div class=\"chart\">", names.Markup(), bars.Markup(), "</div>\n");
}

std::string ActionTitle(const std::string& module, int stage, bool backward, int microbatch) {
  return Cat(module, " stage ", stage, ": ", backward ? "backward" : "forward", " of microbatch ", microbatch);
}

// Width of a slot, and its labels: "F12" if a slot has room for the longest of them, otherwise "12". Forward and
// backward differ in color too.
struct SlotLabels {
  double slot = 0;       // pixels
  bool numbers = false;  // "12"
};

SlotLabels LabelsOf(const Timeline& timeline, int shown, double room) {
  double widest = LabelWidth("F0");
  for (const TimelineRow& row : timeline.rows) {
    for (const TimelineOp& op : row.ops) widest = std::max(widest, LabelWidth(TimelineOpText(op)));
  }
  const double least = std::max(widest - LabelWidth("F"), LabelWidth("00")) + 2.6,
               slot = std::clamp(room / std::max(1, shown), least, 44.0);
  return {slot, widest + 3 > slot};
}

void DrawSlots(const Plan& plan, const TimelineRow& row, double top, const SlotLabels& labels, int shown,
               Drawing& drawing) {
  const double slot = labels.slot;
  const std::string color = ModuleColor(plan, row.module);
  drawing.Rect(0, top, slot * shown, kBarHeight, "band");
  for (const TimelineOp& op : row.ops) {
    if (op.start < 0 || op.start >= shown) continue;
    const std::string label = labels.numbers ? std::to_string(op.microbatch) : TimelineOpText(op);
    drawing.Box({op.start * slot, top, slot, kBarHeight}, "op", op.backward ? color + "b" : color, {label},
                Cat(ActionTitle(row.module, row.stage, op.backward, op.microbatch), ", slot ", op.start));
  }
}

// All operations equally wide: it shows the order.
std::string OrderChart(const Plan& plan, const Timeline& timeline) {
  const int shown = std::min(timeline.slots, kMostSlots);
  const double bottom = kSchedulePitch * static_cast<double>(timeline.rows.size());
  const Drawing names = StageNames(timeline, bottom + 20);
  const SlotLabels labels = LabelsOf(timeline, shown, kDrawingWidth - names.width());
  Drawing drawing(labels.slot * shown, bottom + 20, "pipeline schedule");
  for (size_t i = 0; i < timeline.rows.size(); ++i)
    DrawSlots(plan, timeline.rows[i], kSchedulePitch * static_cast<double>(i), labels, shown, drawing);
  // Slot numbers below: each where they have room, otherwise every fifth.
  for (int at = 0; at < shown; at += labels.slot >= 30 ? 1 : 5) {
    drawing.Text((at + 0.5) * labels.slot, bottom + 12, std::to_string(at), "soft small mid");
  }
  std::string text =
      Cat("<p class=\"soft\">The order: forward (light) and backward (strong) of each microbatch by its number, drawn "
          "as if all took "
          "the same time; what is left empty is a bubble.</p>\n",
          ScrollingChart(names, drawing));
  if (shown < timeline.slots)
    Append(text, "<p class=\"soft\">The first ", shown, " of ", WithCommas(timeline.slots), " slots.</p>\n");
  return text;
}

// In seconds if the GPU is known, otherwise as a share of the step.
std::string TimeText(const StepTime& time, double at) {
  return time.seconds ? SecondsText(at) : Percent(at, time.length);
}

// Boxes of a row, as wide as they take time.
void DrawActions(const Plan& plan, const StepTime& time, const TimelineRow& row, double top, double width,
                 Drawing& drawing) {
  const std::string color = ModuleColor(plan, row.module);
  drawing.Rect(0, top, width, kBarHeight, "band");
  double drawn = -1;  // where the last drawn box ends
  const std::vector<StageAction> actions = ActionsOf(time, row);
  const double least = actions.size() > kMostActions ? 0.7 : 0;
  for (const StageAction& action : actions) {
    const double x = action.start / time.length * width, end = action.end / time.length * width;
    if (end < drawn + least) continue;
    drawn = end;
    drawing.Box({x, top, end - x, kBarHeight}, "action", action.backward ? color + "b" : color,
                {Cat(action.backward ? "B" : "F", action.microbatch)},
                Cat(ActionTitle(row.module, row.stage, action.backward, action.microbatch), "\nfrom ",
                    TimeText(time, action.start), " to ", TimeText(time, action.end)));
  }
}

// The same schedule in predicted time (docs/step_time.md). The drawing is wider than the page, up to 8 times, if there
// are many actions; it scrolls.
std::string TimeChart(const Plan& plan, const Timeline& timeline, const StepTime& time) {
  if (time.length <= 0) return "";
  const double bottom = kSchedulePitch * static_cast<double>(timeline.rows.size());
  const Drawing names = StageNames(timeline, bottom + 20);
  size_t most = 0;
  for (const TimelineRow& row : timeline.rows) most = std::max(most, row.ops.size());
  const double room = kDrawingWidth - names.width(),
               width = std::clamp(8.0 * static_cast<double>(std::min(most, kMostActions)), room, 8 * room);
  Drawing drawing(width, bottom + 20, "predicted time of a step");
  for (size_t i = 0; i < timeline.rows.size(); ++i)
    DrawActions(plan, time, timeline.rows[i], kSchedulePitch * static_cast<double>(i), width, drawing);
  const int ticks = static_cast<int>(4 * width / room);
  for (int i = 0; i <= ticks; ++i) {
    const char* anchor = i == 0 ? "soft small" : i == ticks ? "soft small end" : "soft small mid";
    drawing.Text(width * i / ticks, bottom + 12, TimeText(time, time.length * i / ticks), anchor);
  }
  std::string text = "<p class=\"soft\">In time, as predicted";
  if (time.seconds) Append(text, " for a ", Escaped(plan.cluster.gpu), ": ", SecondsText(time.length), " a step");
  return Cat(text, ". Ranks wait ", Percent(time.bubble, 1), " of it on average.</p>\n",
             ScrollingChart(names, drawing));
}

std::string WaitText(const StepTime& time, const TimelineRow& row) {
  const double empty = EmptyTimeOf(time, row);
  return empty < 0 ? "" : Percent(empty, time.length);
}

std::string StageTable(const Timeline& timeline, const StepTime& time) {
  HtmlTable table({"stage", "ranks", "warmup", "microbatches", "empty slots", "empty time"});
  for (const TimelineRow& row : timeline.rows) {
    table.Add({Escaped(Cat(row.module, ".s", row.stage)), RanksText(row.ranks.first, row.ranks.count),
               std::to_string(row.warmup), WithCommas(static_cast<int64_t>(row.ops.size() / 2)),
               Percent(timeline.slots - row.busy, timeline.slots), WaitText(time, row)});
  }
  return table.Markup();
}

}  // namespace

std::string ScheduleSection(const Plan& plan, const StepTime& time) {
  const Timeline timeline = TimelineOf(plan);
  return Section("schedule", "Schedule",
                 OrderChart(plan, timeline) + TimeChart(plan, timeline, time) + StageTable(timeline, time));
}

}  // namespace planwright
