// When the forwards and backwards of a pipeline run, if each takes one slot and starts as soon as its inputs are there.
// Stages on the same ranks (colocated modules) take turns. It shows the order of docs/layouts/pipeline.md#1f1b. Beside
// it, the same stages in predicted time (planner/predict/estimate/step_time.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/predict/estimate/step_time.h"

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

// The forwards and backwards of a stage, in the order of TimelineRow::ops, as they are predicted: of the first ranks of
// the stage. Its siblings do the same. Empty: the plan has no program for it.
std::vector<StageAction> ActionsOf(const StepTime& time, const TimelineRow& row);

// How long a stage's ranks wait, or their device has nothing to do, in the unit of `time`: those that do so most. -1:
// nobody runs the stage.
double EmptyTimeOf(const StepTime& time, const TimelineRow& row);

// "F3", "B3"
std::string TimelineOpText(const TimelineOp& op);

}  // namespace planwright
