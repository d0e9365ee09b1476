// When the forwards and backwards of a pipeline run, if each takes one slot and starts as soon as its inputs are there.
// Stages on the same ranks (colocated modules) take turns. It shows the order of docs/layouts/pipeline.md#1f1b; for
// times see planner/estimate/step_time.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

struct TimelineOp {
  bool backward = false;
  int microbatch = 0;
  int start = -1;  // its slot; -1: what it waits for never runs
};

struct TimelineRow {
  std::string module;
  int stage = 0, warmup = 0;
  RankRange ranks;
  std::vector<TimelineOp> ops;  // in the stage's order
  int busy = 0;                 // slots in which its ranks work, for this or another stage
};

struct Timeline {
  std::vector<TimelineRow> rows;  // in the order of Plan::schedule
  int slots = 0;                  // up to the end of the last operation
};

Timeline TimelineOf(const Plan& plan);

// "F3", "B3"
std::string TimelineOpText(const TimelineOp& op);

}  // namespace planwright
