#include <algorithm>
#include <cmath>
#include <cstdio>

#include "absl/strings/str_format.h"
#include "planner/base/paper/table.h"
#include "planner/plan/ranks_text.h"
#include "planner/predict/estimate/deadlines.h"
#include "planner/views/show/quantities.h"
#include "planner/views/show/show.h"
#include "planner/views/show/timeline.h"

namespace planwright {
namespace {

constexpr size_t kMostParts = 6;  // one below the other, of a chart that is wider than a line

std::string StageName(const TimelineRow& row) { return row.module + ".s" + std::to_string(row.stage); }

std::string IdleText(const TimelineRow& row, int slots) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f %%", slots > 0 ? 100.0 * (slots - row.busy) / slots : 0.0);
  return text;
}

// In seconds if the device is known, otherwise as a share of the step.
std::string MomentText(const StepTime& time, double at) {
  return time.seconds ? SecondsText(at) : PercentOf(at, time.length, 0);
}

// One bar, `columns` wide: from where an action begins until it ends, with its name where there is room for it.
std::string BarText(const StepTime& time, const TimelineRow& row, size_t columns) {
  std::vector<std::string> cells(columns, " ");
  const double scale = static_cast<double>(columns) / time.length;
  for (const StageAction& action : ActionsOf(time, row)) {
    const auto first = static_cast<size_t>(std::lround(action.start * scale)),
               end = std::min(columns, static_cast<size_t>(std::lround(action.end * scale)));
    const std::string name = TimelineOpText({action.backward, action.microbatch});
    for (size_t at = first; at < end; ++at) {
      const bool named = name.size() < end - first && at - first < name.size();
      cells[at] = named ? name.substr(at - first, 1) : action.backward ? "█" : "░";
    }
  }
  std::string text;
  for (const std::string& cell : cells) text += cell;
  return text;
}

// All stages over the time of a step (docs/step_time.md).
std::string TimeChartText(const Timeline& timeline, const StepTime& time, size_t width) {
  size_t names = 0;
  for (const TimelineRow& row : timeline.rows) names = std::max(names, Width(StageName(row)));
  const size_t columns = names + 30 < width ? width - names - 4 : 26;
  std::string text;
  for (const TimelineRow& row : timeline.rows)
    text += PadRight(StageName(row), names) + "  |" + BarText(time, row, columns) + "|\n";
  // Moments below, each under its place.
  constexpr size_t kParts = 4;
  std::string moments = "0";
  for (size_t i = 1; i <= kParts; ++i) {
    const std::string moment = MomentText(time, time.length * static_cast<double>(i) / kParts);
    const size_t place = columns * i / kParts;
    moments = PadRight(moments, place > moment.size() ? place - moment.size() : 0) + moment;
  }
  return text + std::string(names + 3, ' ') + moments + "\n";
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

std::string ShowSchedule(const Plan& plan, const StepTime& time, size_t width) {
  const Timeline timeline = TimelineOf(plan);
  std::string text;
  if (time.length > 0) {
    const std::string unit = time.seconds ? "a step of " + SecondsText(time.length)
                                          : "a step, by FLOPs (the speed of the device is unknown)";
    text += Wrapped(unit +
                        ", as predicted: forwards (░) and backwards (█) of each microbatch; what is left empty is "
                        "for other stages, or nothing",
                    width) +
            "\n\n" + TimeChartText(timeline, time, width) + "\n";
  }
  text += Wrapped(
              "their order: one column is one forward (F) or backward (B), drawn as if all took the same time; "
              "a dot is a bubble",
              width) +
          "\n\n" + ChartText(timeline, width);
  Table stages({"stage", "ranks", "warmup", "microbatches", "bubbles", "empty time"});
  for (const TimelineRow& row : timeline.rows) {
    const double empty = EmptyTimeOf(time, row);
    stages.Add({StageName(row), RanksText(row.ranks.first, row.ranks.count), std::to_string(row.warmup),
                std::to_string(row.ops.size() / 2), IdleText(row, timeline.slots),
                empty < 0 || time.length <= 0 ? "" : PercentOf(empty, time.length, 0)});
  }
  return text + "\n" + stages.Text("", width) + "\n" + Wrapped(DeadlinesText(plan), width) + "\n";
}

nlohmann::ordered_json ShowScheduleJson(const Plan& plan, const StepTime& time) {
  const Timeline timeline = TimelineOf(plan);
  const auto share = [&](double at) { return time.length > 0 ? at / time.length : 0; };
  nlohmann::ordered_json stages = nlohmann::ordered_json::array();
  for (size_t i = 0; i < plan.schedule.size(); ++i) {
    const StageSchedule& stage = plan.schedule[i];
    nlohmann::ordered_json starts = nlohmann::ordered_json::array(), times = starts;
    for (const TimelineOp& op : timeline.rows[i].ops) starts.push_back(op.start);
    for (const StageAction& action : ActionsOf(time, timeline.rows[i]))
      times.push_back({share(action.start), share(action.end)});
    // "slots" are the start slots of "order", "times" begin and end as shares of the predicted step: one for each.
    stages.push_back({{"module", stage.module},
                      {"stage", stage.stage},
                      {"ranks", Expand({timeline.rows[i].ranks})},
                      {"warmup", stage.warmup},
                      {"order", stage.order},
                      {"slots", std::move(starts)},
                      {"times", std::move(times)}});
  }
  return {{"stages", std::move(stages)},
          {"slots", timeline.slots},
          {"seconds", time.seconds ? nlohmann::ordered_json(time.length) : nlohmann::ordered_json()},
          {"deadlines", DeadlinesJson(plan)}};
}

}  // namespace planwright
