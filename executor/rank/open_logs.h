// What a rank writes while it lives: its log and its recorder, which others can read after its death, and the files of
// its steps.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>

#include "executor/program/probe_writer.h"
#include "executor/program/step_profile.h"
#include "executor/rank/assignment.h"
#include "executor/telemetry/recorder.h"
#include "executor/telemetry/step_log.h"
#include "executor/tensorboard/event_file.h"

namespace planwright::executor {

// Opens the log and the recorder, has warnings of LibTorch in the log, and logs what somebody must know who finds this
// log alone. A rank that was cut off while it started must not touch the files of the life that replaced it: Aborted.
// ResourceExhausted if the recorder cannot be written; a log that cannot be written is no error (log/log.h).
absl::StatusOr<std::unique_ptr<Recorder>> OpenLogs(const Assignment& assignment);

// From now on warnings of LibTorch on the calling thread are in the log too, with their source locations in LibTorch;
// the handler belongs to a thread. Those of other threads are on stderr only, as before.
void LogTorchWarnings();

// The files that a rank writes while it trains.
struct StepFiles {
  std::unique_ptr<StepLog> log;          // null on all ranks except rank 0
  std::unique_ptr<EventFile> events;     // the same
  std::unique_ptr<ProbeWriter> probe;    // null without --probe
  std::unique_ptr<StepProfile> profile;  // null without --trace

  // The life goes on after so many steps, and traces what is left of those that were asked for: the options of a launch
  // hold for all its lives. Says so if that is not all of them.
  void TraceAfter(const Assignment& assignment, int64_t steps_done);
  // After the last step. ResourceExhausted if what was written had no room.
  absl::Status Close();
};

// Keeps a reference to the plan. Makes no file but metrics.jsonl; ResourceExhausted if that cannot be written, or
// run.json not read; DataLoss if that is damaged.
absl::StatusOr<StepFiles> OpenStepFiles(const Assignment& assignment);

}  // namespace planwright::executor
