#include <algorithm>
#include <cstdio>

#include "absl/strings/str_format.h"
#include "planner/estimate/deadlines.h"
#include "planner/show/show.h"
#include "planner/show/table.h"
#include "planner/show/timeline.h"

namespace planwright {
namespace {

constexpr size_t kMostParts = 6;  // one below the other, of a chart that is wider than a line

std::string StageName(const TimelineRow& row) { return row.module + ".s" + std::to_string(row.stage); }

std::string IdleText(const TimelineRow& row, int slots) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f %%", slots > 0 ? 100.0 * (slots - row.busy) / slots : 0.0);
  return text;
}

// Columns [first, end) of a stage, each `cell` characters wide: "F0|F1|. |B0|".
std::string CellsText(const TimelineRow& row, size_t first, size_t end, size_t cell) {
  std::vector<std::string> cells(end - first, ".");
  for (const TimelineOp& op : row.ops) {
    if (op.start >= 0 && static_cast<size_t>(op.start) >= first && static_cast<size_t>(op.start) < end)
      cells[op.start - first] = TimelineOpText(op);
  }
  std::string text;
  for (const std::string& shown : cells) text += PadRight(shown, cell) + "|";
  return text;
}

// All stages, in parts that fit in lines of `width` characters. A long schedule is not drawn to its end: its pattern
// repeats, and --json has every slot.
std::string ChartText(const Timeline& timeline, size_t width) {
  size_t names = 0, cell = 2;
  for (const TimelineRow& row : timeline.rows) {
    names = std::max(names, Width(StageName(row)));
    for (const TimelineOp& op : row.ops) cell = std::max(cell, TimelineOpText(op).size());
  }
  // In a very narrow terminal 8 columns are drawn, and the lines are too long.
  const size_t fitting = names + 30 < width ? (width - names - 3) / (cell + 1) : 8, slots = timeline.slots;
  const size_t shown = std::min(slots, fitting * kMostParts);
  std::string text;
  for (size_t first = 0; first < shown; first += fitting) {
    const size_t end = std::min(shown, first + fitting);
    if (first > 0) text += "\n" + std::string(names + 3, ' ') + "from column " + std::to_string(first) + "\n";
    for (const TimelineRow& row : timeline.rows)
      text += PadRight(StageName(row), names) + "  |" + CellsText(row, first, end, cell) + "\n";
  }
  if (shown < slots)
    text += "(the first " + std::to_string(shown) + " of " + WithCommas(timeline.slots) + " columns)\n";
  return text;
}

// docs/failures.md#deadlines
std::string DeadlinesText(const Plan& plan) {
  const DeadlineRule rule = DeadlineRuleOf(plan);
  const Deadline longest = rule.OfWaiting();
  return absl::StrFormat(
      "deadlines: %.6g s, or %.6g times the estimate of the instruction if that is longer; %.6g s where it waits for "
      "other ranks; at least %.6g s until the first step is done",
      rule.floor, rule.factor, longest.later, longest.first);
}

nlohmann::ordered_json DeadlinesJson(const Plan& plan) {
  const DeadlineRule rule = DeadlineRuleOf(plan);
  return {{"floor", rule.floor},
          {"factor", rule.factor},
          {"waiting", rule.OfWaiting().later},
          {"first_step", rule.OfWaiting().first}};
}

}  // namespace

std::string ShowSchedule(const Plan& plan, size_t width) {
  const Timeline timeline = TimelineOf(plan);
  std::string text =
      Wrapped(
          "one column is one forward (F) or backward (B) of a microbatch, drawn as if all took the same time; "
          "a dot is a bubble",
          width) +
      "\n\n" + ChartText(timeline, width);
  Table stages({"stage", "ranks", "warmup", "microbatches", "bubbles"});
  for (const TimelineRow& row : timeline.rows) {
    stages.Add({StageName(row), RanksText(row.ranks.first, row.ranks.count), std::to_string(row.warmup),
                std::to_string(row.ops.size() / 2), IdleText(row, timeline.slots)});
  }
  return text + "\n" + stages.Text("", width) + "\n" + Wrapped(DeadlinesText(plan), width) + "\n";
}

nlohmann::ordered_json ShowScheduleJson(const Plan& plan) {
  const Timeline timeline = TimelineOf(plan);
  nlohmann::ordered_json stages = nlohmann::ordered_json::array();
  for (size_t i = 0; i < plan.schedule.size(); ++i) {
    const StageSchedule& stage = plan.schedule[i];
    nlohmann::ordered_json starts = nlohmann::ordered_json::array();
    for (const TimelineOp& op : timeline.rows[i].ops) starts.push_back(op.start);
    // "slots" are the start slots of "order", one for each.
    stages.push_back({{"module", stage.module},
                      {"stage", stage.stage},
                      {"ranks", Expand({timeline.rows[i].ranks})},
                      {"warmup", stage.warmup},
                      {"order", stage.order},
                      {"slots", std::move(starts)}});
  }
  return {{"stages", std::move(stages)}, {"slots", timeline.slots}, {"deadlines", DeadlinesJson(plan)}};
}

}  // namespace planwright
