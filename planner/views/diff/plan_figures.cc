#include "planner/views/diff/plan_figures.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "planner/base/paper/table.h"
#include "planner/predict/estimate/memory.h"
#include "planner/predict/estimate/step_speed.h"
#include "planner/views/show/quantities.h"

namespace planwright {
namespace {

struct Figures {
  bool seconds = false;
  double step = 0, waiting = 0;  // waiting: a share
  int64_t memory = 0;
  StepSpeed speed;
};

Figures FiguresOf(const TimedPlan& timed) {
  const auto& [plan, time] = timed;
  Figures figures{.seconds = time.seconds, .step = time.length, .waiting = time.bubble};
  if (time.seconds) figures.speed = SpeedOf(plan, time);
  for (const RoleEstimate& estimate : EstimateMemory(plan))
    figures.memory = std::max(figures.memory, estimate.planned.total());
  return figures;
}

nlohmann::ordered_json JsonOf(const Figures& figures) {
  using Value = nlohmann::ordered_json;
  const auto known = [&](double value) { return figures.seconds ? Value(value) : Value(); };
  return {{"seconds", known(figures.step)},
          {"tokens_per_second_per_rank", known(figures.speed.tokens_per_second)},
          {"mfu", figures.speed.mfu > 0 ? Value(figures.speed.mfu) : Value()},
          {"waiting", figures.waiting},
          {"memory", figures.memory},
          {"rank_hours", known(figures.speed.rank_hours)}};
}

}  // namespace

std::string FiguresText(const TimedPlan& from, const TimedPlan& to, size_t width) {
  const Figures figures[] = {FiguresOf(from), FiguresOf(to)};
  Table table({"predicted", "from", "to"});
  const auto add = [&](const char* name, bool needs_seconds, auto text) {
    std::vector<std::string> row = {name};
    for (const Figures& one : figures) row.push_back(needs_seconds && !one.seconds ? "-" : text(one));
    table.Add(std::move(row));
  };
  add("a step", true, [](const Figures& one) { return SecondsText(one.step); });
  add("tokens a second on each rank", true,
      [](const Figures& one) { return DigitsText(one.speed.tokens_per_second, 5); });
  add("MFU", true, [](const Figures& one) { return one.speed.mfu > 0 ? PercentOf(one.speed.mfu, 1, 1) : "-"; });
  add("ranks wait", false, [](const Figures& one) { return PercentOf(one.waiting, 1, 1); });
  add("memory of the fullest rank", false, [](const Figures& one) { return GigabytesText(one.memory); });
  add("rank-hours of the budget", true, [](const Figures& one) { return HoursText(one.speed.rank_hours); });
  return table.Text("", width);
}

nlohmann::ordered_json FiguresJson(const TimedPlan& from, const TimedPlan& to) {
  return {{"from", JsonOf(FiguresOf(from))}, {"to", JsonOf(FiguresOf(to))}};
}

}  // namespace planwright
