// How long a rank may wait, for another rank or for its own device, before the run counts as hung. The launcher and all
// ranks use this function, so they agree.
#pragma once

#include <chrono>

#include "absl/status/statusor.h"

namespace planwright {

// The environment variable PLANWRIGHT_TIMEOUT_SECONDS, or 600 s if it is not set. InvalidArgument if it is not a number
// from 0.001 to 1e9.
absl::StatusOr<std::chrono::milliseconds> RunTimeout();

}  // namespace planwright
