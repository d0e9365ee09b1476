// The way out of a rank that failed. It lets go of its communication and leaves, after a second at the latest: it waits
// for no peer, no device and no reader of its output.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "executor/telemetry/recorder.h"

namespace planwright::executor {

// What Leave has to see to, from when it is known. Both last as long as the process.
void LeaveThrough(Recorder& recorder);
void LeaveThrough(at::Device device);

// Ends the process with `status` and its last words, in the recorder and on stderr. From any thread; only the first
// one's are heard.
[[noreturn]] void Leave(int status, const std::string& message);

}  // namespace planwright::executor
