// The one way out of a rank that failed. It takes a second at most: it waits for no peer, no device and no reader of
// its output. Nothing is destroyed on the way, because destructors of communicators and devices can wait for peers.
#pragma once

#include <ATen/core/Tensor.h>
#include <absl/status/statusor.h>

#include <exception>
#include <string>
#include <utility>

#include "executor/telemetry/recorder.h"

namespace planwright::executor {

// What Exit has to close, as soon as it exists. The recorder must last as long as the process.
void SetRecorderOfExit(Recorder& recorder);
void SetDeviceOfExit(at::Device device);

// Writes the message to the recorder, to stderr and to the log, aborts all communication of the process, and ends it
// with `status`. May be called from any thread. Only the first call counts: threads that call later stop here.
[[noreturn]] void Exit(int status, const std::string& message);

// Exit with the status of an exception: that of an ExitError (program/exit_error.h), which says where it happened, else
// the one of its kind of failure (communication/failure.h), with `where` before its message.
[[noreturn]] void ExitBecauseOf(const std::exception& error, const std::string& where);

// Exit, unless `status` is OK, with the exit status of its code: FailedPrecondition is another plan or run,
// Unavailable a lost peer, ResourceExhausted storage, DataLoss a damaged checkpoint, Aborted a newer life, and any
// other input that cannot be used.
void ExitUnlessOk(const absl::Status& status);
template <typename Value>
Value ValueOrExit(absl::StatusOr<Value> value) {
  ExitUnlessOk(value.status());
  return *std::move(value);
}

}  // namespace planwright::executor
