// The environment variable PLANWRIGHT_TIMEOUT_SECONDS. The launcher and all ranks use these functions, and ranks get
// the launcher's variable wherever they are started, so they agree.
#pragma once

#include <chrono>
#include <optional>

#include "absl/status/statusor.h"

namespace planwright {

inline constexpr char kTimeoutVariable[] = "PLANWRIGHT_TIMEOUT_SECONDS";

// The variable replaces all deadlines of a run (docs/failures.md#deadlines); nullopt if it is not set. InvalidArgument
// if it is not a number from 0.001 to 1e9.
absl::StatusOr<std::optional<std::chrono::milliseconds>> DeadlineOverride();

// How long ranks wait for each other when they meet: the variable, or 600 s if it is not set.
absl::StatusOr<std::chrono::milliseconds> RunTimeout();

}  // namespace planwright
