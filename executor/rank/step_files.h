// The files that a rank writes while it trains.
#pragma once

#include <absl/status/statusor.h>

#include <memory>

#include "executor/program/probe_writer.h"
#include "executor/program/step_profile.h"
#include "executor/rank/assignment.h"
#include "executor/telemetry/step_log.h"
#include "executor/tensorboard/event_file.h"

namespace planwright::executor {

struct StepFiles {
  std::unique_ptr<StepLog> log;          // null on all ranks except rank 0
  std::unique_ptr<EventFile> events;     // the same
  std::unique_ptr<ProbeWriter> probe;    // null without --probe
  std::unique_ptr<StepProfile> profile;  // null without --trace

  // After the last step. ResourceExhausted if what was written had no room.
  absl::Status Close();
};

// Keeps a reference to the plan. Makes no file but metrics.jsonl; ResourceExhausted if that cannot be written, or
// run.json not read; DataLoss if that is damaged.
absl::StatusOr<StepFiles> OpenStepFiles(const Assignment& assignment);

}  // namespace planwright::executor
