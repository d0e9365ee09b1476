// What others can read of a rank while it lives and after its death: its log and its recorder.
#pragma once

#include <absl/status/statusor.h>

#include <memory>

#include "executor/rank/assignment.h"
#include "executor/telemetry/recorder.h"

namespace planwright::executor {

// Opens both, has warnings of LibTorch in the log, and logs what somebody must know who finds this log alone. A rank
// that was cut off while it started must not touch the files of the life that replaced it: Aborted. ResourceExhausted
// if the recorder cannot be written; a log that cannot be written is no error (log/log.h).
absl::StatusOr<std::unique_ptr<Recorder>> OpenRecords(const Assignment& assignment);

}  // namespace planwright::executor
