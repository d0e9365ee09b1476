// The one way out of a rank that failed. It takes a second at most: it waits for no peer, no device and no reader of
// its output. Nothing is destroyed on the way, because destructors of communicators and devices can wait for peers.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "executor/telemetry/recorder.h"

namespace planwright::executor {

// What Leave has to close, as soon as it exists. The recorder must last as long as the process.
void SetRecorderOfLeave(Recorder& recorder);
void SetDeviceOfLeave(at::Device device);

// Writes the message to the recorder, to stderr and to the log, aborts all communication of the process, and ends it
// with `status`. May be called from any thread. Only the first call counts: threads that call later stop here.
[[noreturn]] void Leave(int status, const std::string& message);

}  // namespace planwright::executor
