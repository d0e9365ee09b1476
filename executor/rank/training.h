// What a rank needs to run its program, made of what the steps of its life before have found.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <optional>

#include "executor/program/walk.h"
#include "executor/rank/assignment.h"
#include "executor/rank/hooks.h"
#include "executor/rank/open_logs.h"
#include "executor/rank/start_point.h"
#include "executor/rank/trial.h"
#include "executor/telemetry/start_up.h"

namespace planwright::executor {

// All of it must outlive the rank.
struct TrainingParts {
  const Assignment& assignment;
  const RankMainHooks& hooks;
  const c10::intrusive_ptr<c10d::Store>& store;
  at::Device device;
  Recorder& recorder;
  StepFiles& files;
  StartPoint& start;
  StartUp& start_up;
  Trial& trial;
};

// The rank, and the walk of its program.
struct Training {
  Rank rank;
  Walk walk;
};

// Opens the samples, joins the groups of the plan, and makes all that the walk needs. Throws what opening and joining
// throw. `training` is filled and not returned: it must not move, and must outlive a failure (rank_main.cc).
void MakeTraining(const TrainingParts& parts, std::optional<Training>& training);

}  // namespace planwright::executor
