// When the forwards and backwards of a pipeline run if every one takes one slot and starts as soon as what it needs is
// there. Stages on the same ranks (colocated modules) take turns. A drawing, not a promise of time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

struct TimelineOp {
  bool backward = false;
  int microbatch = 0;
  int start = -1;  // its slot; -1: it waits for ever
};

struct TimelineRow {
  std::string module;
  int stage = 0, warmup = 0;
  RankRange ranks;              // in a row
  std::vector<TimelineOp> ops;  // in the stage's order
  int busy = 0;                 // slots in which its ranks work, for this or another stage
};

struct Timeline {
  std::vector<TimelineRow> rows;  // in the order of Plan::schedule
  int slots = 0;                  // until the last operation has ended
};

Timeline TimelineOf(const Plan& plan);

// The ranks of one pipeline stage: pp is the slowest axis, so they stand in a row.
RankRange RanksOfStage(const Grid& grid, int stage);

// "F3", "B3"
std::string OpText(const TimelineOp& op);

}  // namespace planwright
