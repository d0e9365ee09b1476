// How long a rank may wait, for another or for its own device, before the run counts as hung. The launcher and every
// rank read it alike.
#pragma once

#include <chrono>

#include "absl/status/statusor.h"

namespace planwright {

// PLANWRIGHT_TIMEOUT_SECONDS, or 600. InvalidArgument if it is not a number of seconds, from 0.001.
absl::StatusOr<std::chrono::milliseconds> RunTimeout();

}  // namespace planwright
