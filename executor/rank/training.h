// What a rank needs to run its program, made of what the steps of its life before have found.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <optional>

#include "executor/program/rank.h"
#include "executor/rank/assignment.h"
#include "executor/rank/beginning.h"
#include "executor/rank/hooks.h"
#include "executor/rank/step_files.h"
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
  Beginning& beginning;
  StartUp& start_up;
};

// Opens the samples, joins the groups of the plan, and makes `rank` ready to walk its program. Handlers keep a
// reference to `rank`. Throws what opening and joining throw.
void MakeRank(const TrainingParts& parts, std::optional<Rank>& rank);

}  // namespace planwright::executor
