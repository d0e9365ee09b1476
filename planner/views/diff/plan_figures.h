// What two plans cost, side by side: time, waiting and memory, as predicted (docs/step_time.md, docs/memory.md).
#pragma once

#include <string>

#include "nlohmann/json.hpp"
#include "planner/plan/plan.h"
#include "planner/predict/estimate/step_time.h"

namespace planwright {

// A plan with its predicted step.
struct TimedPlan {
  const Plan& plan;
  const StepTime& time;
};

// A table for people. Where the speed of a device is unknown, a plan has no seconds: "-".
std::string FiguresText(const TimedPlan& from, const TimedPlan& to, size_t width = 0);

// {"from": {"seconds", "tokens_per_second_per_rank", "mfu", "waiting", "memory", "rank_hours"}, "to": ...}: seconds of
// a step, waiting as a share of it, bytes of the fullest rank. Null: not known.
nlohmann::ordered_json FiguresJson(const TimedPlan& from, const TimedPlan& to);

}  // namespace planwright
